#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct DenseOptions {
  int64_t units = 0;
  Activation activation;
  bool use_bias = true;
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
    using O = DenseOptions;
    return field_list(
        field("units", &O::units), field("activation", &O::activation), field("use_bias", &O::use_bias),
        field("kernel_initializer", &O::kernel_initializer), field("bias_initializer", &O::bias_initializer),
        field("kernel_regularizer", &O::kernel_regularizer), field("bias_regularizer", &O::bias_regularizer),
        field("activity_regularizer", &O::activity_regularizer), field("kernel_constraint", &O::kernel_constraint),
        field("bias_constraint", &O::bias_constraint));
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
