// A step of an optimizer: what happens to the gradients before the rule of the optimizer sees them, and what follows.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/function/control_flow.h"
#include "runnel/graph/control_flow.h"
#include "runnel/graph/name_scope.h"
#include "runnel/keras/optimizer.h"
#include "runnel/op/composed.h"
#include "runnel/ops/math.h"
#include "runnel/ops/norm.h"
#include "runnel/ops/operators.h"

namespace runnel::keras {
namespace {

Gradient clip_gradient_by_value(const Gradient& g, double limit) {
  if (!g.is_slices()) return clip_by_value(g, -limit, limit);
  const IndexedSlices& s = g.slices();
  return IndexedSlices{clip_by_value(s.values, -limit, limit), s.indices, s.dense_shape};
}

}  // namespace

void Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients,
                                const ConstraintLookup& constraint_of, SourceSite where) {
  composed(where, [&] { take_step(gradients, constraint_of); });
}

void Optimizer::take_step(const std::vector<GradientAndVariable>& gradients, const ConstraintLookup& constraint_of) {
  if (gradients.empty()) {
    throw invalid_argument(
        "[{}] No gradients provided for any variable: the list of variables is empty, nothing would be trained. A "
        "model trains what is registered with it: members as keras::Dense dense{{this, \"dense\", {{...}}}}, layers "
        "held by "
        "shared_ptr and plain variables with track(\"name\", part)",
        name());
  }
  const NameScope scope(name().empty() ? class_name() : name());
  const Tensor rate = current_learning_rate();
  if (!state_.built) {
    std::vector<Variable> variables;
    for (const auto& each : gradients) variables.push_back(each.second);
    build(variables);
  }
  std::vector<GradientAndVariable> given = with_gradients(gradients);
  clip(given);
  const std::vector<Step> steps = by_dtype(given, rate);
  if (state_.options.weight_decay) {
    for (const Step& step : steps) decay_weights(step);
  }
  begin_step();
  for (const Step& step : steps) update(step);
  if (state_.options.use_ema) move_averages(given);
  state_.iterations.assign_add(1);
  if (!constraint_of) return;
  for (const auto& [gradient, variable] : given) {
    if (const Constraint* constraint = constraint_of(variable); constraint && *constraint) {
      variable.assign((*constraint)(variable.value()));
    }
  }
}

Tensor Optimizer::current_learning_rate() {
  if (!state_.schedule) return state_.learning_rate;
  const Tensor now = (*state_.schedule)(state_.iterations);
  state_.learning_rate.assign(now);
  return now;
}

void Optimizer::clip(std::vector<GradientAndVariable>& all) const {
  const OptimizerOptions& o = state_.options;
  if (o.clipnorm.value_or(0) > 0) {
    for (auto& [g, variable] : all) g = clip_by_norm(g, *o.clipnorm);
  } else if (o.global_clipnorm.value_or(0) > 0) {
    Gradients gradients;
    for (const auto& [g, variable] : all) gradients.push_back(g);
    gradients = clip_by_global_norm(gradients, *o.global_clipnorm).first;
    for (size_t i = 0; i < all.size(); ++i) all[i].first = std::move(gradients[i]);
  } else if (o.clipvalue.value_or(0) > 0) {
    for (auto& [g, variable] : all) g = clip_gradient_by_value(g, *o.clipvalue);
  }
}

std::vector<Optimizer::Step> Optimizer::by_dtype(const std::vector<GradientAndVariable>& all,
                                                 const Tensor& rate) const {
  std::vector<Step> steps;
  for (const auto& [gradient, variable] : all) {
    const DType dtype = variable.dtype();
    auto step = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.dtype == dtype; });
    if (step == steps.end()) {
      steps.push_back({dtype, {}, {}, {}, rate.dtype() == dtype ? rate : cast(rate, dtype)});
      step = steps.end() - 1;
      step->variables.reserve(all.size());
      step->gradients.reserve(all.size());
      step->places.reserve(all.size());
    }
    step->variables.push_back(variable);
    step->gradients.push_back(gradient);
    step->places.push_back(place_of(variable));
  }
  return steps;
}

void Optimizer::decay_weights(const Step& step) const {
  const Tensor rate = step.learning_rate * *state_.options.weight_decay;
  for (size_t i = 0; i < step.variables.size(); ++i) {
    if (!state_.decays[step.places[i]]) continue;
    const Tensor loss = step.variables[i] * rate;
    step.variables[i].assign_sub(loss);
  }
}

void Optimizer::update(const Step& step) {
  for (size_t i = 0; i < step.variables.size(); ++i) update_step(step.gradients[i], step.variables[i]);
}

void Optimizer::update_step(const Gradient&, const Variable&) {
  throw make_error(Code::unimplemented, "[{}] an optimizer needs update_step() or update()", name());
}

void Optimizer::move_averages(const std::vector<GradientAndVariable>& all) const {
  const OptimizerOptions& o = state_.options;
  for (const auto& [gradient, variable] : all) {
    const Variable& average = slot("average", variable);
    average.assign(average * o.ema_momentum + variable * (1 - o.ema_momentum));
  }
  if (!o.ema_overwrite_frequency) return;
  const auto overwrite = [&] {
    for (const auto& [gradient, variable] : all) variable.assign(slot("average", variable).value());
  };
  cond((state_.iterations + 1) % *o.ema_overwrite_frequency == 0, overwrite, [] {});
}

void Optimizer::finalize_variable_values(const std::vector<Variable>& variables) {
  if (!state_.options.use_ema) return;
  for (const Variable& v : variables) v.assign(slot("average", v).value());
}

std::vector<GradientAndVariable> Optimizer::compute_gradients(const Tensor& loss,
                                                              const std::vector<Variable>& variables,
                                                              GradientTape& tape) {
  const std::vector<Gradient> gradients = tape.gradient(loss, variables);
  std::vector<GradientAndVariable> all;
  all.reserve(variables.size());
  for (size_t i = 0; i < variables.size(); ++i) all.emplace_back(gradients[i], variables[i]);
  return all;
}

void Optimizer::minimize(const std::function<Tensor()>& loss, const std::vector<Variable>& variables,
                         const ConstraintLookup& constraint_of, SourceSite where) {
  require_stack("minimize", where);
  GradientTape tape;
  tape.watch(variables);
  minimize(loss(), variables, tape, constraint_of, where);
}

void Optimizer::minimize(const Tensor& loss, const std::vector<Variable>& variables, GradientTape& tape,
                         const ConstraintLookup& constraint_of, SourceSite where) {
  composed(where, [&] { apply_gradients(compute_gradients(loss, variables, tape), constraint_of); });
}

}  // namespace runnel::keras
