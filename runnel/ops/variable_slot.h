#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/function_ref.h"
#include "runnel/tensor/tensor.h"
#include "runnel/tensor/trackable.h"

namespace runnel {

class Variable;

// What a variable handle refers to. Reads give an immutable snapshot that shares the buffer; writes go in place
// only when nobody else holds the buffer, else they swap it. `version` counts writes (caches key on it). A node of the
// object graph: what layers and optimizers track.
class RUNNEL_API VariableSlot : public Object, public Trackable {
 public:
  VariableSlot(std::string name, DType dtype, PartialShape shape, bool trainable)
      : name(std::move(name)), dtype(dtype), shape(std::move(shape)), trainable(trainable) {}
  ~VariableSlot() override;
  std::string describe() const override { return "Variable '" + name + "'"; }
  std::vector<SavableValue> savable_values() override;

  // The value in a buffer that only this slot holds, ready to be changed in place; copied first if need be.
  // Call with the mutex held; counts as a write.
  Tensor& writable();
  void require_value() const;
  // The value rearranged as some kernel wants it, made once for every version. Call with the mutex held.
  Tensor packed(const std::string& layout, FunctionRef<Tensor(const Tensor&)> make);

  const uint64_t id = next_id();  // of no other slot of this process, not even of one that is gone
  const std::string name;
  const DType dtype;
  const PartialShape shape;  // every value must be compatible with it
  const bool trainable;
  std::string advice;  // what to do while there is no value, for errors; set before the slot is shared
  std::mutex mutex;
  Tensor value;
  uint64_t version = 0;
  std::array<const TensorImpl*, 16> last_reads{};  // what these gave; for comparing only, they may be gone
  uint32_t num_reads = 0;

 private:
  static uint64_t next_id();
  struct Packed {
    std::string layout;
    uint64_t version;
    Tensor value;
  };
  std::vector<Packed> packed_;
};

// The slot that a resource tensor refers to; throws Error when it refers to something else.
RUNNEL_API VariableSlot& variable_slot(const Tensor& handle);

// The variable that this value was just read from; undefined if there is none. For who is given the value of a variable
// and wants what it will be later.
RUNNEL_API Variable variable_just_read(const Tensor& value);
// Makes a variable one of those that variable_just_read knows.
void remember_variable(const std::shared_ptr<VariableSlot>& slot);

}  // namespace runnel
