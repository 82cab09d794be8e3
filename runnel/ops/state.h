#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runnel/base/function_ref.h"
#include "runnel/op/gradient.h"
#include "runnel/op/operand.h"
#include "runnel/tensor/trackable.h"

namespace runnel {

// What a variable handle refers to. Reads give an immutable snapshot that shares the buffer; writes go in place
// only when nobody else holds the buffer, else they swap it. `version` counts writes (caches key on it). A node of the
// object graph: what layers and optimizers track.
class RUNNEL_API VariableSlot : public Object, public Trackable {
 public:
  VariableSlot(std::string name, DType dtype, PartialShape shape, bool trainable)
      : name(std::move(name)), dtype(dtype), shape(std::move(shape)), trainable(trainable) {}
  std::string describe() const override { return "Variable '" + name + "'"; }
  std::vector<SavableValue> savable_values() override;

  // The value in a buffer that only this slot holds, ready to be changed in place; copied first if need be.
  // Call with the mutex held; counts as a write.
  Tensor& writable();
  void require_value() const;
  // The value rearranged as some kernel wants it, made once for every version. Call with the mutex held.
  Tensor packed(const std::string& layout, FunctionRef<Tensor(const Tensor&)> make);

  const std::string name;
  const DType dtype;
  const PartialShape shape;  // every value must be compatible with it
  const bool trainable;
  std::mutex mutex;
  Tensor value;
  uint64_t version = 0;

 private:
  struct Packed {
    std::string layout;
    uint64_t version;
    Tensor value;
  };
  std::vector<Packed> packed_;
};

// The slot that a resource tensor refers to; throws Error when it refers to something else.
RUNNEL_API VariableSlot& variable_slot(const Tensor& handle);

struct VariableOptions {
  std::string name = "Variable";
  bool trainable = true;
  DType dtype = DType::invalid;            // the initial value's when not given
  std::optional<PartialShape> shape = {};  // what later values must fit; the initial value's shape when not given
};

// Tensor state that outlives calls: weights, counters. Stands wherever a Tensor is expected, as its value at that
// moment. Copies of a Variable refer to the same state.
class RUNNEL_API Variable {
 public:
  Variable() = default;
  explicit Variable(const Operand& initial_value, const VariableOptions& options = {});
  static Variable from_handle(const Tensor& handle);

  bool defined() const { return handle_.defined(); }
  const std::string& name() const { return slot().name; }
  DType dtype() const { return slot().dtype; }
  Shape shape() const;
  bool trainable() const { return slot().trainable; }
  // The value now: an op (recorded by tapes, traced by functions).
  Tensor value() const;
  Tensor read_value() const { return value(); }
  operator Tensor() const { return value(); }  // NOLINT: implicit

  // Each returns the variable, so that calls can be chained; the value's dtype and shape must fit.
  const Variable& assign(const Operand& value) const;
  const Variable& assign_add(const Operand& delta) const;
  const Variable& assign_sub(const Operand& delta) const;
  // Row i of `values` changes row indices[i] of the variable; an index may come more than once.
  const Variable& scatter_add(const IndexedSlices& delta) const;
  const Variable& scatter_sub(const IndexedSlices& delta) const;
  const Variable& scatter_mul(const IndexedSlices& factor) const;
  const Variable& scatter_div(const IndexedSlices& divisor) const;
  const Variable& scatter_min(const IndexedSlices& bound) const;
  const Variable& scatter_max(const IndexedSlices& bound) const;
  const Variable& scatter_update(const IndexedSlices& rows) const;
  // The rows that `indices` name; the gradient is IndexedSlices, the whole is never copied.
  Tensor sparse_read(const Operand& indices) const;

  const Tensor& handle() const { return handle_; }
  VariableSlot& slot() const { return variable_slot(handle_); }

 private:
  Tensor handle_;
};

RUNNEL_API std::ostream& operator<<(std::ostream& out, const Variable& variable);

}  // namespace runnel
