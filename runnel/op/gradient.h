#pragma once

#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runnel/tensor/composite.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

struct OpDef;

// A derivative: nothing (the target does not depend on the source), a Tensor, or IndexedSlices (of a gather).
// Converts to a Tensor on demand. In a condition it means whether there is one: `if (grads[0]) ...`, unlike a Tensor,
// which means its value.
class RUNNEL_API Gradient {
 public:
  Gradient() = default;
  Gradient(Tensor dense) : dense_(std::move(dense)) {}  // NOLINT: implicit
  Gradient(IndexedSlices slices);                       // NOLINT: implicit
  // None, of this source ("Variable 'w'"): errors of those who need a tensor name it.
  static Gradient none_of(std::string source);

  bool defined() const { return dense_.defined() || slices_; }
  explicit operator bool() const { return defined(); }
  bool is_slices() const { return slices_ != nullptr; }
  const IndexedSlices& slices() const& { return *slices_; }
  IndexedSlices slices() const&& { return *slices_; }
  // As a Tensor; IndexedSlices are added up row by row. An Error when there is no gradient.
  Tensor value(SourceSite where = SourceSite::current()) const;  // defined with the array ops
  operator Tensor() const { return value(SourceSite()); }        // NOLINT: implicit
  // The tensor itself when it is dense (undefined otherwise): no conversion.
  const Tensor& dense() const& { return dense_; }
  Tensor dense() const&& { return dense_; }

 private:
  Tensor dense_;  // of none_of: refers to nothing and knows why
  std::shared_ptr<const IndexedSlices> slices_;
};
inline bool operator!(const Gradient& gradient) { return !gradient.defined(); }

RUNNEL_API std::ostream& operator<<(std::ostream& out, const Gradient& gradient);

using Gradients = std::vector<Gradient>;

// What a gradient function sees: the inputs and outputs of the recorded call and the gradients of its outputs.
class RUNNEL_API GradCtx {
 public:
  GradCtx(const OpDef& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
          std::span<const Gradient> output_gradients, uint64_t needed)
      : op_(op), inputs_(inputs), outputs_(outputs), output_gradients_(output_gradients), needed_(needed) {}

  const OpDef& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Tensor& x(int i = 0) const { return inputs_[static_cast<size_t>(i)]; }
  const Tensor& y(int i = 0) const { return outputs_[static_cast<size_t>(i)]; }
  // The gradient of output i; zeros when nothing depends on that output.
  Tensor dy(int i = 0) const;  // defined with the array ops
  bool has_dy(int i) const { return output_gradients_[static_cast<size_t>(i)].defined(); }
  const Gradient& raw_dy(int i = 0) const { return output_gradients_[static_cast<size_t>(i)]; }
  // Is the gradient of input i wanted? A gradient nobody needs may be left out (return {} for it).
  bool needs(int i) const { return (needed_ >> (i < 63 ? i : 63) & 1) != 0; }
  // f() when the gradient of input i is wanted, else nothing.
  template <class F>
  Gradient want(int i, F f) const {
    return needs(i) ? Gradient(f()) : Gradient();
  }

 private:
  const OpDef& op_;
  std::span<const Tensor> inputs_;
  std::span<const Tensor> outputs_;
  std::span<const Gradient> output_gradients_;
  uint64_t needed_;
};

}  // namespace runnel
