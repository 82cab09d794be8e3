#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

// What layers that scale and shift after normalising can be told of it, in Keras's order.
template <class O>
struct ScaleAndShiftFields {
  template <class Visit>
  constexpr void operator()(const Visit& visit) const {
    visit(field("epsilon", &O::epsilon, "added to the variance"));
    visit(field("center", &O::center, "with beta"));
    visit(field("scale", &O::scale, "with gamma"));
    visit(field("beta_initializer", &O::beta_initializer, "of beta"));
    visit(field("gamma_initializer", &O::gamma_initializer, "of gamma"));
    if constexpr (requires { &O::moving_mean_initializer; }) {
      visit(field("moving_mean_initializer", &O::moving_mean_initializer, "of the moving mean"));
      visit(field("moving_variance_initializer", &O::moving_variance_initializer, "of the moving variance"));
    }
    visit(field("beta_regularizer", &O::beta_regularizer, "a loss on beta"));
    visit(field("gamma_regularizer", &O::gamma_regularizer, "a loss on gamma"));
    visit(field("beta_constraint", &O::beta_constraint, "what beta is brought to after a step"));
    visit(field("gamma_constraint", &O::gamma_constraint, "what gamma is brought to after a step"));
  }
};

struct BatchNormalizationOptions {
  NamedOnly named_only = {};
  IntTuple axis = {-1};
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&BatchNormalizationOptions::axis>;
  static constexpr auto fields() {
    using O = BatchNormalizationOptions;
    return joined_fields(
        field_list(field("axis", &O::axis, "the dimension of the channels: each has its own statistics"),
                   field("momentum", &O::momentum, "how much of the moving statistics a batch leaves")),
        ScaleAndShiftFields<O>());
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
  NamedOnly named_only = {};
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
  using Positional = PositionalSettings<&LayerNormalizationOptions::axis>;
  static constexpr auto fields() {
    using O = LayerNormalizationOptions;
    return joined_fields(field_list(field("axis", &O::axis, "the dimensions of a sample that are normalised together")),
                         ScaleAndShiftFields<O>());
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
