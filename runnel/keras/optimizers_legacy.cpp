#include "runnel/keras/optimizers_legacy.h"

#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/training.h"

namespace runnel::keras::optimizers::legacy {
namespace {

void check_momentum(const char* optimizer, double momentum) {
  if (momentum < 0 || momentum > 1) {
    throw invalid_argument("[legacy.{}] momentum must be in [0, 1], got {}", optimizer, momentum);
  }
}

}  // namespace

LegacyOptimizer::LegacyOptimizer(const Common& common, const std::map<std::string, double>& hypers)
    : Optimizer(common.learning_rate,
                {.name = common.name,
                 .clipnorm = common.clipnorm,
                 .clipvalue = common.clipvalue,
                 .global_clipnorm = common.global_clipnorm},
                Layout::before_2_11),
      has_schedule_(common.learning_rate.schedule() != nullptr) {
  const OutsideTrace outside;
  const auto add = [&](const std::string& name, double value) {
    hypers_[name] = Variable(Operand(value).as(DType::float32), {.name = common.name + "/" + name, .trainable = false});
  };
  add("decay", common.decay);
  for (const auto& [name, value] : hypers) add(name, value);
  if (!has_schedule_) hypers_["learning_rate"] = learning_rate();
}

// The settings become parts when the optimizer is first used, in the order of their names.
void LegacyOptimizer::build(const std::vector<Variable>& variables) {
  const OutsideTrace outside;
  track("iter", iterations());
  for (const auto& [name, variable] : hypers_) track(name, variable);
  Optimizer::build(variables);
}

const Variable& LegacyOptimizer::hyper(const std::string& name) const {
  const auto found = hypers_.find(name);
  if (found == hypers_.end()) throw make_error(Code::not_found, "[{}] has no setting '{}'", this->name(), name);
  return found->second;
}

Tensor LegacyOptimizer::hyper_of(const std::string& name, const Step& step) const {
  return cast(hyper(name), step.dtype);
}

Tensor LegacyOptimizer::learning_rate_of(const Step& step) const {
  // Not that of the step: it was read before what waits for the variable was restored.
  const Tensor rate = has_schedule_ ? step.learning_rate : hyper_of("learning_rate", step);
  return rate / (1 + hyper_of("decay", step) * cast(iterations(), step.dtype));
}

Config LegacyOptimizer::get_config() const {
  const Config base = Optimizer::get_config();
  Config config = Config::Map();
  config.set("name", name());
  for (const char* clip : {"clipnorm", "clipvalue", "global_clipnorm"}) {
    if (const Config* value = base.find(clip); value && !value->is_null()) config.set(clip, *value);
  }
  config.set("learning_rate", learning_rate_config());
  for (const auto& [name, variable] : hypers_) {
    if (name != "learning_rate") config.set(name, static_cast<double>(variable.value().item<float>()));
  }
  return config;
}

// --- SGD ---

SGD::SGD(const SGDOptions& options)
    : LegacyOptimizer({options.learning_rate, options.decay, options.clipnorm, options.clipvalue,
                       options.global_clipnorm, options.name},
                      {{"momentum", options.momentum}}),
      momentum_(options.momentum > 0),
      nesterov_(options.nesterov) {
  check_momentum("SGD", options.momentum);
}

Config SGD::get_config() const {
  Config config = LegacyOptimizer::get_config();
  config.set("nesterov", nesterov_);
  return config;
}

void SGD::create_slots() {
  if (momentum_) add_old_slots("momentum");
}

void SGD::update(const Step& step) {
  const Tensor rate = learning_rate_of(step);
  if (momentum_) {
    return training::apply_to_all("ResourceApplyKerasMomentum", {step.variables, slots("momentum", step)},
                                  {rate, hyper_of("momentum", step)}, dense_gradients(step),
                                  {{"use_nesterov", nesterov_}});
  }
  training::apply_to_all("ResourceApplyGradientDescent", {step.variables}, {rate}, dense_gradients(step));
}

// --- Adam ---

Adam::Adam(const AdamOptions& options)
    : LegacyOptimizer({options.learning_rate, options.decay, options.clipnorm, options.clipvalue,
                       options.global_clipnorm, options.name},
                      {{"beta_1", options.beta_1}, {"beta_2", options.beta_2}}),
      epsilon_(options.epsilon),
      amsgrad_(options.amsgrad) {}

Config Adam::get_config() const {
  Config config = LegacyOptimizer::get_config();
  config.set("epsilon", epsilon_);
  config.set("amsgrad", amsgrad_);
  return config;
}

void Adam::create_slots() {
  add_old_slots("m");
  add_old_slots("v");
  if (amsgrad_) add_old_slots("vhat");
}

void Adam::update(const Step& step) {
  const Tensor t = number_of(step), beta_1 = hyper_of("beta_1", step), beta_2 = hyper_of("beta_2", step);
  std::vector<std::vector<Variable>> variables{step.variables, slots("m", step), slots("v", step)};
  if (amsgrad_) variables.push_back(slots("vhat", step));
  training::apply_to_all(
      amsgrad_ ? "ResourceApplyAdamWithAmsgrad" : "ResourceApplyAdam", variables,
      {pow(beta_1, t), pow(beta_2, t), learning_rate_of(step), beta_1, beta_2, constant(epsilon_, step)},
      dense_gradients(step));
}

// --- RMSprop ---

RMSprop::RMSprop(const RMSpropOptions& options)
    : LegacyOptimizer({options.learning_rate, options.decay, options.clipnorm, options.clipvalue,
                       options.global_clipnorm, options.name},
                      {{"momentum", options.momentum}, {"rho", options.rho}}),
      epsilon_(options.epsilon),
      momentum_(options.momentum > 0),
      centered_(options.centered) {
  check_momentum("RMSprop", options.momentum);
}

Config RMSprop::get_config() const {
  Config config = LegacyOptimizer::get_config();
  config.set("epsilon", epsilon_);
  config.set("centered", centered_);
  return config;
}

void RMSprop::create_slots() {
  add_old_slots("rms");
  if (momentum_) add_old_slots("momentum");
  if (centered_) add_old_slots("mg");
}

void RMSprop::update(const Step& step) {
  const Tensor rate = learning_rate_of(step), rho = hyper_of("rho", step), epsilon = constant(epsilon_, step);
  const std::vector<Tensor> gradients = dense_gradients(step);
  if (momentum_) {
    std::vector<std::vector<Variable>> variables{step.variables, slots("rms", step), slots("momentum", step)};
    if (centered_) variables.insert(variables.begin() + 1, slots("mg", step));
    return training::apply_to_all(centered_ ? "ResourceApplyCenteredRMSProp" : "ResourceApplyRMSProp", variables,
                                  {rate, rho, hyper_of("momentum", step), epsilon}, gradients);
  }
  const std::vector<Variable> squares = slots("rms", step);
  const std::vector<Variable> means = centered_ ? slots("mg", step) : std::vector<Variable>();
  for (size_t i = 0; i < step.variables.size(); ++i) {
    const Tensor& g = gradients[i];
    squares[i].assign(rho * squares[i] + (1 - rho) * square(g));
    Tensor below = squares[i];
    if (centered_) {
      means[i].assign(rho * means[i] + (1 - rho) * g);
      below = below - square(means[i]);
    }
    step.variables[i].assign_sub(rate * g / (sqrt(below) + epsilon));
  }
}

}  // namespace runnel::keras::optimizers::legacy
