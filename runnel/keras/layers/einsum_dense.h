#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct EinsumDenseOptions {
  std::string equation;                                 // "abc,cd->abd": the input, the kernel, the output
  PartialShape output_shape = PartialShape::unknown();  // without the first dimension, which is the batch
  Activation activation;
  std::string bias_axes;  // the labels of the output that the bias has; none: no bias
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer;
  Regularizer bias_regularizer;
  Regularizer activity_regularizer;
  Constraint kernel_constraint;
  Constraint bias_constraint;
  std::string name;
  Policy dtype;
  bool trainable = true;
  static constexpr auto fields() {
    using O = EinsumDenseOptions;
    return field_list(
        field("output_shape", &O::output_shape), field("equation", &O::equation), field("activation", &O::activation),
        field("bias_axes", &O::bias_axes), field("kernel_initializer", &O::kernel_initializer),
        field("bias_initializer", &O::bias_initializer), field("kernel_regularizer", &O::kernel_regularizer),
        field("bias_regularizer", &O::bias_regularizer), field("activity_regularizer", &O::activity_regularizer),
        field("kernel_constraint", &O::kernel_constraint), field("bias_constraint", &O::bias_constraint));
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
