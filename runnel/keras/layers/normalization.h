#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct BatchNormalizationOptions {
  IntTuple axis = {-1};
  double momentum = 0.99;  // how much of the moving statistics a batch leaves
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;  // with gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = BatchNormalizationOptions;
    return field_list(field("axis", &O::axis, "the dimension of the channels: each has its own statistics"),
                      field("momentum", &O::momentum, "how much of the moving statistics a batch leaves"),
                      field("epsilon", &O::epsilon, "added to the variance"), field("center", &O::center, "with beta"),
                      field("scale", &O::scale, "with gamma"),
                      field("beta_initializer", &O::beta_initializer, "of beta"),
                      field("gamma_initializer", &O::gamma_initializer, "of gamma"),
                      field("moving_mean_initializer", &O::moving_mean_initializer, "of the moving mean"),
                      field("moving_variance_initializer", &O::moving_variance_initializer, "of the moving variance"),
                      field("beta_regularizer", &O::beta_regularizer, "a loss on beta"),
                      field("gamma_regularizer", &O::gamma_regularizer, "a loss on gamma"),
                      field("beta_constraint", &O::beta_constraint, "what beta is brought to after a step"),
                      field("gamma_constraint", &O::gamma_constraint, "what gamma is brought to after a step"));
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
  IntTuple axis = {-1};
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = LayerNormalizationOptions;
    return field_list(field("axis", &O::axis, "the dimensions of a sample that are normalised together"),
                      field("epsilon", &O::epsilon, "added to the variance"), field("center", &O::center, "with beta"),
                      field("scale", &O::scale, "with gamma"),
                      field("beta_initializer", &O::beta_initializer, "of beta"),
                      field("gamma_initializer", &O::gamma_initializer, "of gamma"),
                      field("beta_regularizer", &O::beta_regularizer, "a loss on beta"),
                      field("gamma_regularizer", &O::gamma_regularizer, "a loss on gamma"),
                      field("beta_constraint", &O::beta_constraint, "what beta is brought to after a step"),
                      field("gamma_constraint", &O::gamma_constraint, "what gamma is brought to after a step"));
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
