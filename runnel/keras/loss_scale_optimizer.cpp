#include "runnel/keras/loss_scale_optimizer.h"

#include "runnel/base/format.h"
#include "runnel/function/control_flow.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras::mixed_precision {
namespace {

constexpr double kFirstScale = 32768;
constexpr int64_t kGrowthSteps = 2000;
constexpr double kScaleFactor = 2;

// "loss_scale" of a checkpoint.
class DynamicLossScale : public Trackable {
 public:
  DynamicLossScale(const Variable& scale, const Variable& counter) {
    track("current_loss_scale", scale);
    track("good_steps", counter);
  }
};

const Optimizer& to_be_scaled(const OptimizerArg& inner) {
  if (!inner) throw invalid_argument("[LossScaleOptimizer] there is no optimizer inside");
  if (dynamic_cast<const LossScaleOptimizer*>(inner.get().get())) {
    throw invalid_argument("[LossScaleOptimizer] the optimizer inside scales the loss already");
  }
  return *inner.get();
}

Tensor all_finite(const std::vector<GradientAndVariable>& all) {
  std::vector<Tensor> finite;
  for (const auto& [g, variable] : all) {
    finite.push_back(reduce_all(is_finite(g.is_slices() ? g.slices().values : g.dense())));
  }
  return reduce_all(stack(finite));
}

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(const OptimizerArg& inner_optimizer, const LossScaleOptions& options)
    : Optimizer(to_be_scaled(inner_optimizer), kClassName),
      inner_(inner_optimizer.get()),
      initial_scale_(options.initial_scale.value_or(kFirstScale)),
      growth_steps_(options.dynamic ? options.dynamic_growth_steps.value_or(kGrowthSteps) : 0) {
  if (!options.dynamic) {
    if (!options.initial_scale) throw invalid_argument("[LossScaleOptimizer] without dynamic, initial_scale is needed");
    if (options.dynamic_growth_steps) {
      throw invalid_argument("[LossScaleOptimizer] without dynamic, dynamic_growth_steps has no meaning");
    }
    return;
  }
  if (growth_steps_ < 1) {
    throw invalid_argument("[LossScaleOptimizer] dynamic_growth_steps must be at least 1, got {}", growth_steps_);
  }
  scale_ = Variable(Operand(initial_scale_).as(DType::float32), {.name = "current_loss_scale", .trainable = false});
  counter_ = Variable(int64_t{0}, {.name = "good_steps", .trainable = false});
  track("loss_scale", std::make_shared<DynamicLossScale>(scale_, counter_));
}

Tensor LossScaleOptimizer::loss_scale() const {
  return dynamic() ? scale_.value() : Operand(initial_scale_).as(DType::float32);
}

Tensor LossScaleOptimizer::get_scaled_loss(const Tensor& loss) const { return loss * cast(loss_scale(), loss.dtype()); }

std::vector<Gradient> LossScaleOptimizer::get_unscaled_gradients(const std::vector<Gradient>& gradients) const {
  const Tensor factor = 1 / loss_scale();
  const auto unscaled = [&](const Tensor& t) { return t * cast(factor, t.dtype()); };
  std::vector<Gradient> all;
  for (const Gradient& g : gradients) {
    if (!g.defined()) {
      all.emplace_back();
    } else if (g.is_slices()) {
      all.emplace_back(IndexedSlices{unscaled(g.slices().values), g.slices().indices, g.slices().dense_shape});
    } else {
      all.emplace_back(unscaled(g.dense()));
    }
  }
  return all;
}

std::vector<GradientAndVariable> LossScaleOptimizer::compute_gradients(const Tensor& loss,
                                                                       const std::vector<Variable>& variables,
                                                                       GradientTape& tape) {
  const std::vector<Gradient> gradients = get_unscaled_gradients(tape.gradient(get_scaled_loss(loss), variables));
  std::vector<GradientAndVariable> all;
  for (size_t i = 0; i < variables.size(); ++i) all.emplace_back(gradients[i], variables[i]);
  return all;
}

void LossScaleOptimizer::adapt_scale(const Tensor& finite) const {
  const Tensor scale = scale_, steps = counter_ + 1;
  const Tensor grows = steps >= growth_steps_;
  const Tensor doubled = scale * kScaleFactor;
  const Tensor halved = maximum(scale / kScaleFactor, 1);
  scale_.assign(where(finite, where(grows & is_finite(doubled), doubled, scale), halved));
  counter_.assign(where(finite & !grows, steps, zeros_like(steps)));
}

void LossScaleOptimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients,
                                         const ConstraintLookup& constraint_of, SourceSite where) {
  composed(where, [&] { take_scaled_step(gradients, constraint_of); });
}

void LossScaleOptimizer::take_scaled_step(const std::vector<GradientAndVariable>& gradients,
                                          const ConstraintLookup& constraint_of) {
  if (gradients.empty()) return inner_->apply_gradients(gradients, constraint_of);
  // The slots are for all variables, though the step gets those with a gradient alone.
  std::vector<Variable> variables;
  for (const auto& each : gradients) variables.push_back(each.second);
  build(variables);
  if (!dynamic()) return inner_->apply_gradients(gradients, constraint_of);
  const std::vector<GradientAndVariable> given = with_gradients(gradients);
  const Tensor finite = all_finite(given);
  adapt_scale(finite);
  cond(
      finite, [&] { inner_->apply_gradients(given, constraint_of); }, [&] { iterations().assign_add(1); });
}

const Variable& LossScaleOptimizer::slot(const std::string& kind, const Variable& variable) const {
  return inner_->slot(kind, variable);
}

Config LossScaleOptimizer::get_config() const {
  LossScaleOptions options{.dynamic = dynamic(), .initial_scale = initial_scale_};
  if (dynamic()) options.dynamic_growth_steps = growth_steps_;
  return with_options(Config::Map{{"inner_optimizer", optimizers::serialize(*inner_)}}, options);
}

std::shared_ptr<LossScaleOptimizer> LossScaleOptimizer::from_config(const Config& config) {
  return std::make_shared<LossScaleOptimizer>(optimizers::deserialize(config["inner_optimizer"]),
                                              options_from_config<LossScaleOptions>(config));
}

}  // namespace runnel::keras::mixed_precision
