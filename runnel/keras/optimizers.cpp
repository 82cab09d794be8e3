#include "runnel/keras/optimizers.h"

#include <algorithm>
#include <cctype>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/segment.h"
#include "runnel/ops/sort.h"
#include "runnel/ops/training.h"

namespace runnel::keras::optimizers {
namespace {

void check_not_negative(const char* optimizer, const char* setting, double value) {
  if (value < 0) throw invalid_argument("[{}] {} must not be negative, got {}", optimizer, setting, value);
}

}  // namespace

SGD::SGD(Options options, SourceSite where) : OptimizerOf(std::move(options), where) {
  const double momentum = this->options().momentum;
  if (momentum >= 0 && momentum <= 1) return;
  throw at_line(invalid_argument("[SGD] momentum must be in [0, 1], got {}", momentum), where);
}

void SGD::create_slots() { add_slots({{.name = "m", .edge = "momentums"}}); }

void SGD::update(const Step& step) {
  if (options().momentum != 0) {
    return training::apply_to_all("ResourceApplyKerasMomentum", {step.variables, slots("m", step)},
                                  {step.learning_rate, constant(options().momentum, step)}, dense_gradients(step),
                                  {{"use_nesterov", options().nesterov}});
  }
  for (size_t i = 0; i < step.variables.size(); ++i) {
    if (!step.gradients[i].is_slices()) continue;
    const IndexedSlices& g = step.gradients[i].slices();
    step.variables[i].scatter_sub({g.values * step.learning_rate, g.indices, g.dense_shape});
  }
  const Step dense = dense_part(step);
  training::apply_to_all("ResourceApplyGradientDescent", {dense.variables}, {dense.learning_rate},
                         dense_gradients(dense));
}

void Adam::create_slots() {
  add_slots({{.name = "m", .edge = "_momentums"}, {.name = "v", .edge = "_velocities"}});
  if (options().amsgrad) add_slots({{.name = "vhat", .edge = "_velocity_hats"}});
}

void Adam::update(const Step& step) {
  const Tensor t = number_of(step), beta_1 = constant(options().beta_1, step),
               beta_2 = constant(options().beta_2, step);
  const std::vector<Tensor> scalars{pow(beta_1, t), pow(beta_2, t), step.learning_rate,
                                    beta_1,         beta_2,         constant(options().epsilon, step)};
  std::vector<std::vector<Variable>> variables{step.variables, slots("m", step), slots("v", step)};
  if (options().amsgrad) variables.push_back(slots("vhat", step));
  training::apply_to_all(options().amsgrad ? "ResourceApplyAdamWithAmsgrad" : "ResourceApplyAdam", variables, scalars,
                         dense_gradients(step));
}

namespace {
AdamOptions adam_options(const AdamWOptions& options) {
  AdamOptions made;
  copy_shared_fields(options, made);
  return made;
}
}  // namespace

AdamW::AdamW(const Options& options) : Adam(adam_options(options)) {}

void RMSprop::create_slots() {
  // Keras has the three lists whether they are used or not.
  for (const char* list : {"_velocities", "_momentums", "_average_gradients"}) slot_list(list);
  add_slots({{.name = "velocity", .edge = "_velocities"}});
  if (options().momentum > 0) add_slots({{.name = "momentum", .edge = "_momentums"}});
  if (options().centered) add_slots({{.name = "average_gradient", .edge = "_average_gradients"}});
}

void RMSprop::update(const Step& step) {
  const bool centered = options().centered;
  const Tensor rho = constant(options().rho, step), epsilon = constant(options().epsilon, step);
  std::vector<std::vector<Variable>> variables{step.variables, slots("velocity", step)};
  if (options().momentum <= 0) {
    if (centered) variables.push_back(slots("average_gradient", step));
    return training::apply_to_all(centered ? "_ApplyKerasCenteredRMSprop" : "_ApplyKerasRMSprop", variables,
                                  {step.learning_rate, rho, epsilon}, dense_gradients(step));
  }
  if (centered) variables.insert(variables.begin() + 1, slots("average_gradient", step));
  variables.push_back(slots("momentum", step));
  training::apply_to_all(centered ? "ResourceApplyCenteredRMSProp" : "ResourceApplyRMSProp", variables,
                         {step.learning_rate, rho, constant(options().momentum, step), epsilon}, dense_gradients(step));
}

Adagrad::Adagrad(Options options, SourceSite where) : OptimizerOf(std::move(options), where) {
  at_caller(where, [&] {
    check_not_negative(kClassName, "initial_accumulator_value", this->options().initial_accumulator_value);
  });
}

void Adagrad::create_slots() { add_slots({{"accumulator", options().initial_accumulator_value, "_accumulators"}}); }

void Adagrad::update(const Step& step) {
  const Tensor epsilon = constant(options().epsilon, step);
  for (size_t i = 0; i < step.variables.size(); ++i) {
    if (!step.gradients[i].is_slices()) continue;
    const IndexedSlices& all = step.gradients[i].slices();
    const Unique rows = unique(all.indices);
    const Tensor g = math::unsorted_segment_sum(all.values, rows.idx, size(rows.y));
    const Variable& accumulator = slot("accumulator", step.variables[i]);
    accumulator.scatter_add({square(g), rows.y, all.dense_shape});
    const Tensor scale = sqrt(accumulator.sparse_read(rows.y) + epsilon);
    step.variables[i].scatter_sub({g * step.learning_rate / scale, rows.y, all.dense_shape});
  }
  const Step dense = dense_part(step);
  training::apply_to_all("_ApplyKerasAdagrad", {dense.variables, slots("accumulator", dense)},
                         {dense.learning_rate, epsilon}, dense_gradients(dense));
}

void Adadelta::create_slots() {
  add_slots({{.name = "accumulated_grad", .edge = "_accumulated_grads"},
             {.name = "accumulated_delta_var", .edge = "_accumulated_delta_vars"}});
}

void Adadelta::update(const Step& step) {
  training::apply_to_all(
      "ResourceApplyAdadelta", {step.variables, slots("accumulated_grad", step), slots("accumulated_delta_var", step)},
      {step.learning_rate, constant(options().rho, step), constant(options().epsilon, step)}, dense_gradients(step));
}

void Adamax::create_slots() { add_slots({{.name = "m", .edge = "_m"}, {.name = "u", .edge = "_u"}}); }

void Adamax::update(const Step& step) {
  const Tensor beta_1 = constant(options().beta_1, step);
  training::apply_to_all("ResourceApplyAdaMax", {step.variables, slots("m", step), slots("u", step)},
                         {pow(beta_1, number_of(step)), step.learning_rate, beta_1, constant(options().beta_2, step),
                          constant(options().epsilon, step)},
                         dense_gradients(step));
}

void Nadam::create_slots() {
  add_slots({{.name = "m", .edge = "_momentums"}, {.name = "v", .edge = "_velocities"}});
  add_variable("_u_product", Tensor(1.f));
}

// The momentum of step `t`.
Tensor Nadam::u_at(const Tensor& t) const { return options().beta_1 * (1 - 0.5 * pow(Tensor(0.96f), t)); }

Variable Nadam::u_product() const { return Variable::from_handle(find_edge("_u_product")->handle); }

void Nadam::begin_step() { u_product().assign(u_product() * u_at(cast(iterations() + 1, DType::float32))); }

void Nadam::update(const Step& step) {
  const Tensor t = cast(iterations() + 1, DType::float32);
  const Tensor lr = cast(learning_rate(), DType::float32);
  const Tensor product = u_product(), next = u_at(t + 1);
  const Tensor m_rate = lr * next / (1 - product * next), grad_rate = lr * (1 - u_at(t)) / (1 - product);
  const Tensor beta_2 = constant(options().beta_2, step);
  training::apply_to_all("_ApplyKerasNadam", {step.variables, slots("m", step), slots("v", step)},
                         {cast(m_rate, step.dtype), cast(grad_rate, step.dtype), pow(beta_2, number_of(step)),
                          constant(options().beta_1, step), beta_2, constant(options().epsilon, step)},
                         dense_gradients(step));
}

Ftrl::Ftrl(Options options, SourceSite where) : OptimizerOf(std::move(options), where) {
  at_caller(where, [&] {
    const Options& o = this->options();
    check_not_negative(kClassName, "initial_accumulator_value", o.initial_accumulator_value);
    check_not_negative(kClassName, "l1_regularization_strength", o.l1_regularization_strength);
    check_not_negative(kClassName, "l2_regularization_strength", o.l2_regularization_strength);
    check_not_negative(kClassName, "l2_shrinkage_regularization_strength", o.l2_shrinkage_regularization_strength);
    if (o.learning_rate_power > 0) {
      throw invalid_argument("[Ftrl] learning_rate_power must not be positive, got {}", o.learning_rate_power);
    }
  });
}

void Ftrl::create_slots() {
  add_slots(
      {{"accumulator", options().initial_accumulator_value, "_accumulators"}, {.name = "linear", .edge = "_linears"}});
}

void Ftrl::update(const Step& step) {
  const Options& o = options();
  const Tensor l2 = o.l2_regularization_strength + o.beta / (2 * step.learning_rate);
  training::apply_to_all(
      "ResourceApplyFtrlV2", {step.variables, slots("accumulator", step), slots("linear", step)},
      {step.learning_rate, constant(o.l1_regularization_strength, step), l2,
       constant(o.l2_shrinkage_regularization_strength, step), constant(o.learning_rate_power, step)},
      dense_gradients(step));
}

}  // namespace runnel::keras::optimizers
