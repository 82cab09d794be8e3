#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

struct ActivationOptions {
  NamedOnly named_only = {};
  Activation activation = "linear";
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ActivationOptions::activation>;
  static constexpr auto fields() {
    return field_list(field("activation", &ActivationOptions::activation, "applied to the result; none: linear"));
  }
};
// An activation as a layer; Keras calls it Activation, which is the type of activations here.
class RUNNEL_API ActivationLayer : public LayerOf<ActivationLayer, ActivationOptions> {
 public:
  static constexpr const char* kClassName = "Activation";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};
namespace layers {
using Activation = ActivationLayer;
}

struct SoftmaxOptions {
  NamedOnly named_only = {};
  AxisTuple axis = {-1};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&SoftmaxOptions::axis>;
  static constexpr auto fields() { return field_list(field("axis", &SoftmaxOptions::axis, "the axis, or axes")); }
};
// Positive numbers that sum to 1 over `axis`. Elements where the mask of the call (of the input's shape, or broadcast
// to it) is false get 0.
class RUNNEL_API Softmax : public LayerOf<Softmax, SoftmaxOptions> {
 public:
  static constexpr const char* kClassName = "Softmax";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct ReLUOptions {
  NamedOnly named_only = {};
  std::optional<double> max_value = {};
  double negative_slope = 0;
  double threshold = 0;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ReLUOptions::max_value>;
  static constexpr auto fields() {
    return field_list(field("max_value", &ReLUOptions::max_value, "the largest output"),
                      field("negative_slope", &ReLUOptions::negative_slope, "the slope below the threshold"),
                      field("threshold", &ReLUOptions::threshold, "what counts as above"));
  }
};
// max_value where x >= max_value, x from the threshold on, negative_slope * (x - threshold) below it.
class RUNNEL_API ReLU : public LayerOf<ReLU, ReLUOptions> {
 public:
  static constexpr const char* kClassName = "ReLU";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct LeakyReLUOptions {
  NamedOnly named_only = {};
  double alpha = 0.3;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&LeakyReLUOptions::alpha>;
  static constexpr auto fields() {
    return field_list(field("alpha", &LeakyReLUOptions::alpha, "the slope of negative values"));
  }
};
// x where it is positive, else alpha * x.
class RUNNEL_API LeakyReLU : public LayerOf<LeakyReLU, LeakyReLUOptions> {
 public:
  static constexpr const char* kClassName = "LeakyReLU";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct ELUOptions {
  NamedOnly named_only = {};
  double alpha = 1;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ELUOptions::alpha>;
  static constexpr auto fields() {
    return field_list(field("alpha", &ELUOptions::alpha, "the slope of negative values"));
  }
};
// x where it is positive, else alpha * (exp(x) - 1).
class RUNNEL_API ELU : public LayerOf<ELU, ELUOptions> {
 public:
  static constexpr const char* kClassName = "ELU";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct PReLUOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  IntTuple shared_axes = {};
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = PReLUOptions;
    return field_list(
        field("alpha_initializer", &O::alpha_initializer, "of the slopes"),
        field("alpha_regularizer", &O::alpha_regularizer, "a loss on the slopes"),
        field("alpha_constraint", &O::alpha_constraint, "what the slopes are brought to after a step"),
        field("shared_axes", &O::shared_axes, "axes of the input along which alpha is one number: {1, 2} for images"));
  }
};
// x where it is positive, else alpha * x, with alpha learnt.
class RUNNEL_API PReLU : public LayerOf<PReLU, PReLUOptions> {
 public:
  static constexpr const char* kClassName = "PReLU";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
  Config get_config() const override;

  Variable alpha;  // the input's shape without the batch, 1 along shared axes
};

}  // namespace runnel::keras
