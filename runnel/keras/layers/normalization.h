#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct BatchNormalizationOptions {
  std::vector<int64_t> axis = {-1};  // the dimension of the channels: each has its own statistics
  double momentum = 0.99;            // how much of the moving statistics a batch leaves
  double epsilon = 1e-3;
  bool center = true;  // with beta
  bool scale = true;   // with gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer;
  Regularizer gamma_regularizer;
  Constraint beta_constraint;
  Constraint gamma_constraint;
  std::string name;
  Policy dtype;
  bool trainable = true;
  static constexpr auto fields() {
    using O = BatchNormalizationOptions;
    return field_list(
        field("axis", &O::axis), field("momentum", &O::momentum), field("epsilon", &O::epsilon),
        field("center", &O::center), field("scale", &O::scale), field("beta_initializer", &O::beta_initializer),
        field("gamma_initializer", &O::gamma_initializer),
        field("moving_mean_initializer", &O::moving_mean_initializer),
        field("moving_variance_initializer", &O::moving_variance_initializer),
        field("beta_regularizer", &O::beta_regularizer), field("gamma_regularizer", &O::gamma_regularizer),
        field("beta_constraint", &O::beta_constraint), field("gamma_constraint", &O::gamma_constraint));
  }
};
// gamma * (x - mean) / sqrt(variance + epsilon) + beta per channel: in training with the statistics of the batch, which
// also move the moving ones, else with the moving ones. A layer that is not trainable always uses the moving ones.
class RUNNEL_API BatchNormalization : public LayerOf<BatchNormalization, BatchNormalizationOptions> {
 public:
  static constexpr const char* kClassName = "BatchNormalization";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  Variable gamma, beta, moving_mean, moving_variance;  // [channels]; float32 where computation is in 16 bits

 private:
  Tensor call_fused(const Tensor& input, bool training);
  Tensor call_composed(const Tensor& input, bool training, const Tensor& mask);

  std::vector<int> axes_;    // of the channels, from the front
  std::vector<int> others_;  // the dimensions that statistics are taken over
  Shape channels_;           // the shape of the weights
};

struct LayerNormalizationOptions {
  std::vector<int64_t> axis = {-1};  // the dimensions of a sample that are normalised together
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer;
  Regularizer gamma_regularizer;
  Constraint beta_constraint;
  Constraint gamma_constraint;
  std::string name;
  Policy dtype;
  bool trainable = true;
  static constexpr auto fields() {
    using O = LayerNormalizationOptions;
    return field_list(
        field("axis", &O::axis), field("epsilon", &O::epsilon), field("center", &O::center), field("scale", &O::scale),
        field("beta_initializer", &O::beta_initializer), field("gamma_initializer", &O::gamma_initializer),
        field("beta_regularizer", &O::beta_regularizer), field("gamma_regularizer", &O::gamma_regularizer),
        field("beta_constraint", &O::beta_constraint), field("gamma_constraint", &O::gamma_constraint));
  }
};
// gamma * (x - mean) / sqrt(variance + epsilon) + beta with the mean and variance of every sample over `axis`.
class RUNNEL_API LayerNormalization : public LayerOf<LayerNormalization, LayerNormalizationOptions> {
 public:
  static constexpr const char* kClassName = "LayerNormalization";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  Variable gamma, beta;  // the sizes of `axis`

 private:
  std::vector<int64_t> axes_;
  Shape aligned_;  // the shape of the weights with size 1 for the other dimensions
  bool last_axes_ = false;
};

}  // namespace runnel::keras
