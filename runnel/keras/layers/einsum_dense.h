#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct EinsumDenseOptions {
  std::string equation = {};  // "abc,cd->abd": the input, the kernel, the output
  PartialShape output_shape = PartialShape::unknown();
  Activation activation = {};
  std::string bias_axes = {};
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = EinsumDenseOptions;
    return field_list(field("output_shape", &O::output_shape, "without the first dimension, which is the batch"),
                      field("equation", &O::equation, "\"abc,cd->abd\": the input, the kernel, the output"),
                      field("activation", &O::activation, "applied to the result; none: linear"),
                      field("bias_axes", &O::bias_axes, "the labels of the output that the bias has; none: no bias"),
                      field("kernel_initializer", &O::kernel_initializer, "of the kernel"),
                      field("bias_initializer", &O::bias_initializer, "of the bias"),
                      field("kernel_regularizer", &O::kernel_regularizer, "a loss on the kernel"),
                      field("bias_regularizer", &O::bias_regularizer, "a loss on the bias"),
                      field("activity_regularizer", &O::activity_regularizer, "a loss on the output"),
                      field("kernel_constraint", &O::kernel_constraint, "what the kernel is brought to after a step"),
                      field("bias_constraint", &O::bias_constraint, "what the bias is brought to after a step"));
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
