#pragma once

#include "runnel/keras/optimizer.h"

namespace runnel::keras::mixed_precision {

struct LossScaleOptions {
  bool dynamic = true;
  std::optional<double> initial_scale = {};
  std::optional<int64_t> dynamic_growth_steps = {};
  static constexpr auto fields() {
    using O = LossScaleOptions;
    return field_list(field("dynamic", &O::dynamic, "find the scale while training"),
                      field("initial_scale", &O::initial_scale, "32768 when dynamic; else it must be given, and stays"),
                      field("dynamic_growth_steps", &O::dynamic_growth_steps,
                            "after so many steps with finite gradients the scale doubles; 2000 when dynamic"));
  }
};

// Keeps small gradients from vanishing in float16: the loss is multiplied by a scale before derivatives are taken, the
// gradients divided by it. A step whose gradients are not finite changes no variable and halves the scale. `minimize`
// does all of it; with a tape of your own:
//   loss = optimizer.get_scaled_loss(loss);
//   auto gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, variables));
class RUNNEL_API LossScaleOptimizer : public Optimizer {
 public:
  static constexpr const char* kClassName = "LossScaleOptimizer";
  explicit LossScaleOptimizer(const OptimizerArg& inner_optimizer, const LossScaleOptions& options = {});
  LossScaleOptimizer(const LossScaleOptimizer&) = default;  // moving copies, too: both are handles to the same state

  const OptimizerPtr& inner_optimizer() const { return inner_; }
  bool dynamic() const { return growth_steps_ > 0; }
  Tensor loss_scale() const;                                    // float32
  const Variable& dynamic_counter() const { return counter_; }  // steps since the scale changed; none when not dynamic
  Tensor get_scaled_loss(const Tensor& loss) const;
  std::vector<Gradient> get_unscaled_gradients(const std::vector<Gradient>& gradients) const;

  std::string class_name() const override { return kClassName; }
  Config get_config() const override;
  static std::shared_ptr<LossScaleOptimizer> from_config(const Config& config);
  void set_learning_rate(const LearningRate& learning_rate) override { inner_->set_learning_rate(learning_rate); }
  const Variable& slot(const std::string& kind, const Variable& variable) const override;
  void build(const std::vector<Variable>& variables) override { build_inner(*inner_, variables); }
  void exclude_from_weight_decay(const std::vector<Variable>& variables,
                                 const std::vector<std::string>& names = {}) override {
    inner_->exclude_from_weight_decay(variables, names);
  }
  void apply_gradients(const std::vector<GradientAndVariable>& gradients, const ConstraintLookup& constraint_of = {},
                       SourceSite where = SourceSite::current()) override;
  std::vector<GradientAndVariable> compute_gradients(const Tensor& loss, const std::vector<Variable>& variables,
                                                     GradientTape& tape) override;
  void finalize_variable_values(const std::vector<Variable>& variables) override {
    inner_->finalize_variable_values(variables);
  }

 private:
  void take_scaled_step(const std::vector<GradientAndVariable>& gradients, const ConstraintLookup& constraint_of);
  void adapt_scale(const Tensor& finite) const;

  OptimizerPtr inner_;
  double initial_scale_;
  int64_t growth_steps_;  // 0: not dynamic
  Variable scale_;        // of these two only a dynamic scale has need
  Variable counter_;
};

}  // namespace runnel::keras::mixed_precision
