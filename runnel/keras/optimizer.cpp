#include "runnel/keras/optimizer.h"

#include <algorithm>
#include <regex>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {
namespace {

void check_optimizer_options(const OptimizerOptions& o) {
  if (o.clipnorm && o.global_clipnorm) {
    throw invalid_argument("[{}] clipnorm and global_clipnorm exclude each other, got {} and {}", o.name, *o.clipnorm,
                           *o.global_clipnorm);
  }
  if (!o.use_ema) return;
  if (o.ema_momentum < 0 || o.ema_momentum > 1) {
    throw invalid_argument("[{}] ema_momentum must be in [0, 1], got {}", o.name, o.ema_momentum);
  }
  if (o.ema_overwrite_frequency && *o.ema_overwrite_frequency < 1) {
    throw invalid_argument("[{}] ema_overwrite_frequency must be at least 1, got {}", o.name,
                           *o.ema_overwrite_frequency);
  }
}

// As with variables: a function may make an optimizer when it is first traced, not whenever it is traced.
void tell_trace_of_optimizer(const std::string& name) {
  Tracer* tracer = Tracer::current();
  if (!tracer) return;
  try {
    tracer->variable_created(name);
  } catch (const Error& e) {
    throw e.reworded(fmt::format(
        "[{}] an optimizer is made in the function '{}', with new state whenever that is traced: a function "
        "makes optimizers on its first call only. Make it outside of the function",
        name, tracer->graph()->name()));
  }
}

// ['dense/kernel', 'dense/bias']: the variables without a gradient.
std::string quoted_names_of(const std::vector<GradientAndVariable>& all) {
  std::string names;
  for (const auto& [gradient, variable] : all) {
    if (!gradient.defined()) names += (names.empty() ? "'" : ", '") + variable.name() + "'";
  }
  return "[" + names + "]";
}

}  // namespace

Config LearningRate::config() const {
  return schedule_ ? optimizers::schedules::serialize(*schedule_) : Config(value_);
}

LearningRate LearningRate::from_config(const Config& config) {
  if (config.is_map()) return LearningRate(optimizers::schedules::deserialize(config));
  return LearningRate(config.as_double());
}

Optimizer::Optimizer(const LearningRate& learning_rate, OptimizerOptions options, SourceSite where)
    : Optimizer(learning_rate, std::move(options), Layout::current, where) {}

Optimizer::Optimizer(const LearningRate& learning_rate, OptimizerOptions options, Layout layout,
                     const SourceSite& where)
    : shared_state_(std::make_shared<State>()) {
  composed(where, [&] {
    check_optimizer_options(options);
    tell_trace_of_optimizer(options.name);
  });
  const OutsideTrace outside;
  const bool old = layout == Layout::before_2_11;  // has its edges when it is built
  const std::string prefix = old ? options.name + "/" : "";
  state_.options = std::move(options);
  state_.slot_scope = state_.options.name + "/";
  state_.layout = layout;
  state_.variables = std::make_shared<TrackableList>();
  state_.iterations = Variable(int64_t{0}, {.name = old ? prefix + "iter" : "iteration", .trainable = false});
  state_.variables->append(state_.iterations);
  if (!old) {
    track("_variables", state_.variables);
    track("_iterations", state_.iterations);
  }
  state_.schedule = learning_rate.schedule();
  if (state_.schedule) {
    const Tensor first = (*state_.schedule)(state_.iterations);
    state_.learning_rate = Variable(first, {.name = "current_learning_rate", .trainable = false});
    if (!old) track("_current_learning_rate", state_.learning_rate);
  } else {
    state_.learning_rate = learning_rate.variable();
    if (!state_.learning_rate.defined()) {
      state_.learning_rate = Variable(Operand(learning_rate.value()).as(DType::float32),
                                      {.name = prefix + "learning_rate", .trainable = false});
    }
    if (!old) track("_learning_rate", state_.learning_rate);
  }
}

// NOLINTNEXTLINE(bugprone-copy-constructor-init): the copy is another handle to the same node
Optimizer::Optimizer(const Optimizer& other)
    : Trackable(), std::enable_shared_from_this<Optimizer>(), shared_state_(other.shared_state_) {}

Optimizer::Optimizer(const Optimizer& inner, std::string name) : shared_state_(std::make_shared<State>()) {
  static_cast<Settings&>(state_) = inner.state_;
  state_.inner = inner.shared_state_;
  state_.options.name = std::move(name);
}

Config Optimizer::learning_rate_config() const {
  if (state_.schedule) return optimizers::schedules::serialize(*state_.schedule);
  return cast(state_.learning_rate, DType::float64).item<double>();
}

std::string Optimizer::class_name() const { return class_name_of(typeid(*this)); }

Config Optimizer::get_config() const {
  Config::Map entries = options_to_config(state_.options);
  entries.emplace_back("jit_compile", false);
  entries.emplace_back("is_legacy_optimizer", false);
  entries.emplace_back("learning_rate", learning_rate_config());
  return entries;
}

void Optimizer::set_learning_rate(const LearningRate& learning_rate) {
  if (learning_rate.schedule()) {
    if (!state_.schedule) {
      throw make_error(Code::failed_precondition,
                       "[{}] the optimizer was made with a number as its learning rate: make it with a schedule",
                       name());
    }
    if (state_.built) {  // steps that were traced follow the one they have seen
      throw make_error(Code::failed_precondition,
                       "[{}] the optimizer has begun to train by its schedule, which cannot be changed then: make "
                       "another optimizer",
                       name());
    }
    state_.schedule = learning_rate.schedule();
    return;
  }
  if (state_.schedule) {
    throw make_error(Code::failed_precondition,
                     "[{}] the learning rate follows a schedule and cannot be set: make the optimizer with a number",
                     name());
  }
  const Variable& from = learning_rate.variable();
  const DType dtype = state_.learning_rate.dtype();
  state_.learning_rate.assign(from.defined() ? cast(from, dtype) : Operand(learning_rate.value()).as(dtype));
}

std::vector<Variable> Optimizer::variables() const {
  std::vector<Variable> all;
  for (const Edge& edge : state_.variables->edges()) all.push_back(Variable::from_handle(edge.handle));
  return all;
}

std::vector<Tensor> Optimizer::get_weights() const {
  std::vector<Tensor> values;
  for (const Variable& v : variables()) values.push_back(v.value());
  return values;
}

void Optimizer::set_weights(const std::vector<Tensor>& values, SourceSite where) {
  composed(where, [&] {
    const std::vector<Variable> all = variables();
    if (values.size() != all.size()) {
      throw invalid_argument("[{}] has {} variables, got {} values{}", name(), all.size(), values.size(),
                             all.size() == 1 ? ": call build() first" : "");
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (!(values[i].shape() == all[i].shape())) {
        throw invalid_argument("[{}] variable '{}' has shape {}, the value {}", name(), all[i].name(),
                               all[i].shape().str(), values[i].shape().str());
      }
      if (values[i].dtype() != all[i].dtype()) {
        throw invalid_argument("[{}] variable '{}' holds {}, the value is {}", name(), all[i].name(),
                               dtype_name(all[i].dtype()), dtype_name(values[i].dtype()));
      }
    }
    for (size_t i = 0; i < all.size(); ++i) all[i].assign(values[i]);
  });
}

std::vector<Trackable::Edge> Optimizer::State::children() const {
  std::vector<Edge> all = inner ? inner->children() : std::vector<Edge>();
  all.insert(all.end(), edges().begin(), edges().end());
  return all;
}

void Optimizer::build(const std::vector<Variable>& variables) {
  if (state_.built) return;
  const OutsideTrace outside;
  const size_t num_edges = edges().size(), num_variables = state_.variables->size();
  try {
    make_slots(variables);
    state_.built = true;
  } catch (...) {  // a value that was waiting does not fit: as if nothing had been tried
    while (edges().size() > num_edges) untrack(std::string(edges().back().name));
    while (state_.variables->size() > num_variables) state_.variables->remove(state_.variables->size() - 1);
    state_.updated.clear();
    state_.places.clear();
    state_.decays.clear();
    state_.slots.clear();
    state_.old_slots.clear();
    throw;
  }
}

void Optimizer::build_inner(Optimizer& inner, const std::vector<Variable>& variables) {
  struct WithoutScope {
    explicit WithoutScope(std::string& scope) : scope(scope), before(std::exchange(scope, "")) {}
    ~WithoutScope() { scope = before; }
    std::string& scope;
    const std::string before;
  } const without(inner.state_.slot_scope);
  inner.build(variables);
  state_.settle_children();
}

void Optimizer::make_slots(const std::vector<Variable>& variables) {
  state_.updated = variables;
  if (state_.layout == Layout::current) state_.track_empty("_index_dict");
  for (size_t i = 0; i < variables.size(); ++i) {
    state_.places[&variables[i].slot()] = i;
    state_.decays.push_back(decays(variables[i]));
  }
  if (state_.options.use_ema) {
    for (const Variable& v : variables) {
      state_.slots["average"].push_back(new_slot("average", v, v.value()));
      slot_list("_model_variables_moving_average").append(state_.slots["average"].back());
    }
  }
  create_slots();
}

Variable Optimizer::new_slot(const std::string& kind, const Variable& variable, const Tensor& initial) {
  Variable made(initial, {.name = slot_scope() + kind + "/" + variable.name(), .trainable = false});
  state_.variables->append(made);
  return made;
}

TrackableList& Optimizer::slot_list(const std::string& edge) {
  if (!find_edge(edge)) track(edge, std::make_shared<TrackableList>());
  return static_cast<TrackableList&>(*find_edge(edge)->object);
}

void Optimizer::add_slots(const std::vector<SlotKind>& kinds) {
  for (const Variable& v : state_.updated) {
    for (const SlotKind& kind : kinds) {
      const Tensor initial = fill(v.shape(), Operand(kind.initial).as(v.dtype()));
      state_.slots[kind.name].push_back(new_slot(kind.name, v, initial));
      if (!kind.edge.empty()) slot_list(kind.edge).append(state_.slots[kind.name].back());
    }
  }
}

void Optimizer::add_old_slots(const std::string& kind) {
  for (const Variable& v : state_.updated) {
    const Variable made(zeros(v.shape(), v.dtype()),
                        {.name = name() + "/" + v.name() + "/" + kind, .trainable = false});
    state_.variables->append(made);
    state_.slots[kind].push_back(made);
    state_.old_slots.push_back({&v.slot(), kind, &made.slot()});
    state_.slot_made(v.slot(), kind, made.slot());
  }
}

Variable Optimizer::add_variable(const std::string& edge, const Tensor& initial) {
  Variable made(initial, {.name = slot_scope() + "Variable", .trainable = false});
  track(edge, made);
  return made;
}

size_t Optimizer::place_of(const Variable& variable) const {
  if (auto it = state_.places.find(&variable.slot()); it != state_.places.end()) return it->second;
  throw make_error(Code::not_found,
                   "[{}] the variable '{}' is not among the {} that the optimizer was built for: call build() with all "
                   "variables first, or use an optimizer for each part of the model",
                   name(), variable.name(), state_.updated.size());
}

const Variable& Optimizer::slot(const std::string& kind, const Variable& variable) const {
  const auto it = state_.slots.find(kind);
  if (it == state_.slots.end()) throw make_error(Code::not_found, "[{}] there are no slots '{}'", name(), kind);
  return it->second[place_of(variable)];
}

std::vector<Variable> Optimizer::slots(const std::string& kind, const Step& step) const {
  const std::vector<Variable>& all = state_.slots.at(kind);
  std::vector<Variable> these;
  these.reserve(step.places.size());
  for (const size_t place : step.places) these.push_back(all.at(place));
  return these;
}

std::vector<Tensor> Optimizer::dense_gradients(const Step& step) {
  std::vector<Tensor> dense;
  dense.reserve(step.gradients.size());
  for (const Gradient& g : step.gradients) dense.push_back(g.value());
  return dense;
}

Optimizer::Step Optimizer::dense_part(const Step& step) {
  Step dense{step.dtype, {}, {}, {}, step.learning_rate};
  for (size_t i = 0; i < step.variables.size(); ++i) {
    if (step.gradients[i].is_slices()) continue;
    dense.variables.push_back(step.variables[i]);
    dense.gradients.push_back(step.gradients[i]);
    dense.places.push_back(step.places[i]);
  }
  return dense;
}

Tensor Optimizer::number_of(const Step& step) const { return cast(state_.iterations + 1, step.dtype); }

void Optimizer::exclude_from_weight_decay(const std::vector<Variable>& variables,
                                          const std::vector<std::string>& names) {
  if (state_.built) {
    throw make_error(Code::failed_precondition, "[{}] exclude_from_weight_decay comes before the optimizer is built",
                     name());
  }
  state_.not_decayed.clear();
  for (const Variable& v : variables) state_.not_decayed.insert(&v.slot());
  state_.not_decayed_names = names;
}

bool Optimizer::decays(const Variable& variable) const {
  if (state_.not_decayed.contains(&variable.slot())) return false;
  return std::none_of(state_.not_decayed_names.begin(), state_.not_decayed_names.end(),
                      [&](const std::string& name) { return std::regex_search(variable.name(), std::regex(name)); });
}

std::vector<GradientAndVariable> Optimizer::with_gradients(const std::vector<GradientAndVariable>& all) {
  std::vector<GradientAndVariable> given;
  given.reserve(all.size());
  for (const GradientAndVariable& each : all) {
    if (each.first.defined()) given.push_back(each);
  }
  if (given.empty()) {
    throw invalid_argument(
        "[{}] No gradients provided for any variable: {}. The loss depends on none of them: compute it from them while "
        "the tape records, with ops that have gradients",
        name(), quoted_names_of(all));
  }
  if (given.size() < all.size() && !state_.warned) {
    state_.warned = true;
    log_warning(
        "[{}] Gradients do not exist for variables {} when minimizing the loss. If you're using `model.compile()`, did "
        "you forget to provide a `loss` argument?",
        name(), quoted_names_of(all));
  }
  return given;
}

OptimizerPtr OptimizerArg::held(const Optimizer& optimizer) {
  if (const auto found = optimizer.weak_from_this().lock()) return std::const_pointer_cast<Optimizer>(found);
  throw invalid_argument("[{}] an optimizer handed on by a reference to its base class must be held by a shared_ptr",
                         optimizer.name());
}

}  // namespace runnel::keras

namespace runnel {

std::vector<keras::GradientAndVariable> zip(const std::vector<Gradient>& gradients,
                                            const std::vector<Variable>& variables) {
  if (gradients.size() != variables.size()) {
    throw invalid_argument("[zip] {} gradients do not go with {} variables", gradients.size(), variables.size());
  }
  std::vector<keras::GradientAndVariable> pairs;
  pairs.reserve(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) pairs.emplace_back(gradients[i], variables[i]);
  return pairs;
}

}  // namespace runnel
