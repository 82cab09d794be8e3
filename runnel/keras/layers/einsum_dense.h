#pragma once

#include "runnel/keras/layers/kernel_options.h"

namespace runnel::keras {

struct EinsumDenseOptions {
  NamedOnly named_only = {};
  std::string equation = {};
  PartialShape output_shape = PartialShape::unknown();
  Activation activation = {};
  std::string bias_axes = {};
  RUNNEL_KERNEL_OPTIONS;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&EinsumDenseOptions::equation, &EinsumDenseOptions::output_shape>;
  static constexpr auto fields() {
    using O = EinsumDenseOptions;
    return joined_fields(
        field_list(field("output_shape", &O::output_shape, "without the first dimension, which is the batch"),
                   field("equation", &O::equation, "\"abc,cd->abd\": the input, the kernel, the output"),
                   field("activation", &O::activation, "applied to the result; none: linear"),
                   field("bias_axes", &O::bias_axes, "the labels of the output that the bias has; none: no bias")),
        kernel_fields<O>());
  }
};
// activation(einsum(equation, input, kernel) + bias), where every label is a letter ("..." is not supported).
class RUNNEL_API EinsumDense : public LayerOf<EinsumDense, EinsumDenseOptions> {
 public:
  static constexpr const char* kClassName = "EinsumDense";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  Variable kernel;
  Variable bias;  // has size 1 in the dimensions after its first that bias_axes does not name

 private:
  std::string of_input_, of_kernel_, of_output_;  // the labels
};

}  // namespace runnel::keras
