#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct DenseOptions {
  int64_t units = 0;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  int64_t input_dim = 0;  // as input_shape = {input_dim}; 0: not given
  RUNNEL_LAYER_OPTIONS;
  PartialShape default_input_shape() const { return input_dim > 0 ? PartialShape{input_dim} : PartialShape::unknown(); }
  static constexpr auto fields() {
    using O = DenseOptions;
    return field_list(field("units", &O::units, "the size of the output"),
                      field("activation", &O::activation, "applied to the result; none: linear"),
                      field("use_bias", &O::use_bias, "with a bias"),
                      field("kernel_initializer", &O::kernel_initializer, "of the kernel"),
                      field("bias_initializer", &O::bias_initializer, "of the bias"),
                      field("kernel_regularizer", &O::kernel_regularizer, "a loss on the kernel"),
                      field("bias_regularizer", &O::bias_regularizer, "a loss on the bias"),
                      field("activity_regularizer", &O::activity_regularizer, "a loss on the output"),
                      field("kernel_constraint", &O::kernel_constraint, "what the kernel is brought to after a step"),
                      field("bias_constraint", &O::bias_constraint, "what the bias is brought to after a step"));
  }
};
// activation(x . kernel + bias) over the last dimension of x.
class RUNNEL_API Dense : public LayerOf<Dense, DenseOptions> {
 public:
  static constexpr const char* kClassName = "Dense";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& given, const CallArgs& args) override;

  Variable kernel;  // [inputs, units]
  Variable bias;    // [units]
};

}  // namespace runnel::keras
