#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runnel/op/operand.h"
#include "runnel/tensor/nest.h"

namespace runnel {

struct TensorArrayOptions {
  bool dynamic_size = false;  // may writes make it longer?
  // What every element fits. An element nobody wrote reads as zeros where this is fully known.
  PartialShape element_shape = PartialShape::unknown();
  bool infer_shape = true;  // the first element with a known shape says what the others must have
  // Taken for TensorFlow's sake, without effect: a read never clears, so an element can be read again and again.
  bool clear_after_read = true;
  std::string name = "TensorArray";
};

// A sequence of tensors that is filled step by step: what a loop computes. A value like a Tensor: methods that change
// it return the new array (`ta = ta.write(i, x)`), the old one stays as it was. One type for eager code and for graphs;
// it is an argument, result and loop variable of traced functions, and differentiable through every method.
class RUNNEL_API TensorArray {
 public:
  TensorArray() = default;  // no array: defined() is false
  explicit TensorArray(DType dtype, const Operand& size = 0, const TensorArrayOptions& options = {});

  bool defined() const { return flow_.defined(); }
  DType dtype(SourceSite where = SourceSite::current()) const;
  const PartialShape& element_shape(SourceSite where = SourceSite::current()) const;  // as far as known
  bool dynamic_size(SourceSite where = SourceSite::current()) const;
  const std::string& name(SourceSite where = SourceSite::current()) const;
  Tensor size(SourceSite where = SourceSite::current()) const;  // int32 scalar

  Tensor read(const Operand& index) const;
  [[nodiscard]] TensorArray write(const Operand& index, const Operand& value) const;

  // Elements of one shape along a new first dimension, and back.
  Tensor stack(SourceSite where = SourceSite::current()) const;
  [[nodiscard]] TensorArray unstack(const Operand& value) const;
  // The elements at `indices` stacked; row i of `value` written at indices[i].
  Tensor gather(const Operand& indices) const;
  [[nodiscard]] TensorArray scatter(const Operand& indices, const Operand& value) const;
  // Elements joined along their first dimension, in which they may differ, and back.
  Tensor concat(SourceSite where = SourceSite::current()) const;
  [[nodiscard]] TensorArray split(const Operand& value, const Operand& lengths) const;

  [[nodiscard]] TensorArray identity(SourceSite where = SourceSite::current()) const;

  // The variant tensor that holds the elements: a TensorList.
  const Tensor& flow() const { return flow_; }

  // As a part of structures (nest): the flow, and what is fixed.
  std::vector<Tensor> components() const { return {flow_}; }
  CompositeSpecPtr composite_spec() const;
  static TensorArray from_components(const CompositeSpecPtr& spec, const std::vector<Tensor>& parts,
                                     SourceSite where = SourceSite::current());

  class Spec;

 private:
  TensorArray(std::shared_ptr<const Spec> spec, Tensor flow) : spec_(std::move(spec)), flow_(std::move(flow)) {}
  const Spec& fixed(const SourceSite& where = {}) const;
  // This array with other elements, whose shape is `element`.
  TensorArray with_flow(Tensor flow, const PartialShape& element, const char* method) const;
  Tensor typed(const Operand& value, const char* method) const;
  void check_index(const Tensor& index, const char* method, bool may_grow) const;
  void check_length(int64_t n, const char* method) const;

  std::shared_ptr<const Spec> spec_;
  Tensor flow_;
};

}  // namespace runnel
