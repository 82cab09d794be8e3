#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

struct OpDef;

// A short list with room for four before it needs the heap: outputs of one op.
template <class T>
class ShortList {
 public:
  explicit ShortList(int n) : n_(n) {
    if (n > 4) more_.resize(static_cast<size_t>(n));
  }
  T& operator[](int i) { return data()[i]; }
  const T& operator[](int i) const { return data()[i]; }
  T* data() { return n_ > 4 ? more_.data() : few_.data(); }
  const T* data() const { return n_ > 4 ? more_.data() : few_.data(); }
  int size() const { return n_; }

 private:
  int n_;
  std::array<T, 4> few_{};
  std::vector<T> more_;
};

using Inputs = std::span<const Tensor* const>;

// What a shape function sees and says. The same function serves eager calls (every input is a value) and
// tracing (shapes may be partly unknown, values mostly).
class RUNNEL_API InferContext {
 public:
  InferContext(const OpDef& op, Inputs inputs, const void* attrs, int num_outputs)
      : op_(op), inputs_(inputs), attrs_(attrs), outputs_(num_outputs) {}

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return outputs_.size(); }
  const PartialShape& input(int i) const {
    const TensorImpl& t = *inputs_[static_cast<size_t>(i)]->impl();
    return t.symbol ? t.symbol->shape() : t.shape;
  }
  DType dtype(int i) const { return inputs_[static_cast<size_t>(i)]->dtype(); }
  // The value of input i when it is known already, else null.
  const Tensor* constant(int i) const;
  // A known int32 or int64 scalar or vector input, as integers.
  std::optional<Dims> constant_ints(int i) const;
  // The elements of an int32 or int64 scalar or vector input as far as they are known, kUnknownDim where they are not
  // (a known -1 counts as unknown); nothing when not even their number is known.
  std::optional<Dims> partial_ints(int i) const;
  // Input i as the shape it spells out (a vector of sizes, -1 for unknown); partly or fully unknown when its
  // value is.
  PartialShape constant_shape(int i) const;

  // Is input i known to be a scalar (of rank 0) with the bits of this number? 0 is not -0.
  bool is_scalar(int i, double number) const;

  // Input i must have this rank; unknown rank passes. The Error names the input.
  void require_rank(int i, int rank) const;
  void require_rank_at_least(int i, int rank) const;

  void output(int i, PartialShape shape) { outputs_[i] = std::move(shape); }
  void output(PartialShape shape) { output(0, std::move(shape)); }
  const PartialShape& output_shape(int i) const { return outputs_[i]; }

  // Did the shape function ask for a value that is not known? Then it must see the values when the graph runs.
  bool asked_in_vain() const { return asked_in_vain_; }
  // While tracing, a shape function may also say what an output's value is (Shape of a static shape).
  bool wants_values() const { return values_ != nullptr; }
  void ask_values(std::vector<Tensor>* values, std::vector<Dims>* elements) {
    values_ = values;
    elements_ = elements;
  }
  void value(int i, Tensor known) { (*values_)[static_cast<size_t>(i)] = std::move(known); }
  // Of an integer scalar or vector: the elements, kUnknownDim where they are not known.
  void elements(int i, Dims known) { (*elements_)[static_cast<size_t>(i)] = std::move(known); }

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attrs_);
  }

 private:
  const OpDef& op_;
  Inputs inputs_;
  const void* attrs_;
  ShortList<PartialShape> outputs_;
  std::vector<Tensor>* values_ = nullptr;
  std::vector<Dims>* elements_ = nullptr;
  mutable bool asked_in_vain_ = false;
};

// Memory for an output of an op: what the thread is offered (tensor/output_destination.h), or its own.
RUNNEL_API Tensor make_output(DType dtype, const Shape& shape, Device& home);

// What a kernel sees. Outputs whose shape could be inferred are allocated already; a kernel of an op whose
// output shapes depend on values calls allocate(), and one that hands on an input calls forward(). A kernel of
// a device may return before its work ran, but outputs and inputs in host memory are its own only until then.
class RUNNEL_API KernelContext {
 public:
  KernelContext(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, const DType* output_dtypes,
                int num_outputs, Device& device)
      : op_(op),
        inputs_(inputs),
        attrs_(attrs),
        outputs_(outputs),
        output_dtypes_(output_dtypes),
        num_outputs_(num_outputs),
        device_(device) {}

  const OpDef& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return num_outputs_; }
  Inputs inputs() const { return inputs_; }
  Tensor* outputs() const { return outputs_; }
  const Tensor& in(int i) const { return *inputs_[static_cast<size_t>(i)]; }
  template <class T>
  const T* in(int i) const {
    return in(i).template data<T>();
  }
  Tensor& out(int i = 0) const { return outputs_[i]; }
  template <class T>
  T* out(int i = 0) const {
    return outputs_[i].template mutable_data<T>();
  }
  DType output_dtype(int i) const { return output_dtypes_[i]; }
  const DType* output_dtypes() const { return output_dtypes_; }
  Tensor& allocate(int i, const Shape& shape) const;
  void forward(int i, Tensor value) const { outputs_[i] = std::move(value); }
  Device& device() const { return device_; }

  const void* raw_attrs() const { return attrs_; }

  // int32 or int64 input i as integers / as one integer.
  Dims ints(int i) const;
  int64_t int_scalar(int i) const;

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attrs_);
  }

 private:
  const OpDef& op_;
  Inputs inputs_;
  const void* attrs_;
  Tensor* outputs_;
  const DType* output_dtypes_;
  int num_outputs_;
  Device& device_;
};

// A tensor of int32 or int64, any shape, as integers; throws Error for another dtype.
RUNNEL_API Dims int_values(const Tensor& t);

}  // namespace runnel
