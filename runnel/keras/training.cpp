#include "runnel/keras/training.h"

#include <algorithm>
#include <set>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/function/function.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/loss_scale_optimizer.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {
namespace {

Tensor batch_size_of(const std::vector<Tensor>& tensors, DType dtype) { return cast(shape(tensors.at(0))[0], dtype); }

// In the wider of their dtypes: what layers add is often float32 beside a loss of float16.
Tensor sum_of_losses(const Tensor& a, const Tensor& b) {
  const DType dtype = dtype_size(a.dtype()) >= dtype_size(b.dtype()) ? a.dtype() : b.dtype();
  return losses::to_dtype(a, dtype) + losses::to_dtype(b, dtype);
}

// What a loss or metric gives; its errors say which it was, and of what.
template <class F>
auto named_in_errors(const std::string& what, const std::string& output, const std::string& model, const Tensor& y_true,
                     const Tensor& y_pred, const F& compute) {
  try {
    return compute();
  } catch (const Error& e) {
    throw e.reworded(fmt::format("{}\n  in {} of output '{}' of model '{}': labels {}{}, predictions {}{}", e.what(),
                                 what, output, model, dtype_name(y_true.dtype()), y_true.partial_shape().str(),
                                 dtype_name(y_pred.dtype()), y_pred.partial_shape().str()));
  }
}

// The metrics among the parts of an object, through lists, then those of the layers in it.
void add_metrics(const Trackable& at, std::vector<const Trackable*>& met, std::vector<Metric*>& out) {
  if (std::find(met.begin(), met.end(), &at) != met.end()) return;
  met.push_back(&at);
  for (const Trackable::Edge& edge : at.edges()) {
    if (auto* metric = dynamic_cast<Metric*>(edge.object)) {
      if (std::find(out.begin(), out.end(), metric) == out.end()) out.push_back(metric);
    } else if (edge.object->holds_weights() && !dynamic_cast<Layer*>(edge.object)) {
      add_metrics(*edge.object, met, out);
    }
  }
  if (const auto* layer = dynamic_cast<const Layer*>(&at)) {
    for (const Layer* inner : layer->sublayers()) add_metrics(*inner, met, out);
  }
}

// Is one a copy of the other?
bool counts_with(const Metric& a, const Metric& b) {
  return !a.variables().empty() && !b.variables().empty() && &a.variables()[0].slot() == &b.variables()[0].slot();
}

std::string leaf_shapes(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& t : tensors) text += (text.empty() ? "" : ", ") + t.partial_shape().str();
  return text;
}

}  // namespace

void Model::compile(CompileOptions options, SourceSite where) {
  called_from(where, [&] { set_training(std::move(options)); });
}

void Model::set_training(CompileOptions options) {
  refuse_moved_from();
  training_ = std::make_unique<Training>(std::move(options));
  if (dtype_policy().name() == "mixed_float16" &&
      !std::dynamic_pointer_cast<mixed_precision::LossScaleOptimizer>(training_->optimizer)) {
    training_->optimizer = std::make_shared<mixed_precision::LossScaleOptimizer>(training_->optimizer);
  }
  training_->loss_metric = std::make_shared<metrics::Mean>("loss");
  prediction_ = nullptr;  // it was traced as the options before said
  replace("optimizer", std::shared_ptr<Trackable>(training_->optimizer));
}

Model::Training& Model::training() const {
  refuse_moved_from();
  if (!training_) {
    throw make_error(
        Code::failed_precondition,
        "[{}] model '{}' must be compiled before it is trained or tested: call model.compile({{.optimizer = "
        "..., .loss = ...}})",
        class_name(), name());
  }
  return *training_;
}

Optimizer& Model::optimizer() const { return *training().optimizer; }

void Model::forget_training_functions() {
  prediction_ = nullptr;
  if (!training_) return;
  training_->train = training_->test = nullptr;
  training_->trained.clear();
  training_->after_step = {};
}

// Steps and predictions that were traced before a layer in the model was assigned would go on with its old weights.
// Models in which nothing changed stay as they are: other threads may be using them.
void Model::forget_if_changed() {
  const uint64_t now = last_change();
  const uint64_t seen = seen_change_.load(std::memory_order_relaxed);
  if (now == seen) return;
  if (last_change_within() > seen) forget_training_functions();
  seen_change_.store(now, std::memory_order_relaxed);
}

void Model::Training::make_outputs(const Model& model, const std::vector<Tensor>& y_true,
                                   const std::vector<Tensor>& y_pred) {
  if (!outputs.empty()) return;
  const OutsideTrace outside;  // metrics have variables
  const size_t n = y_pred.size();
  const std::vector<std::string> names = model.output_names(n);
  std::vector<Output> made;
  const auto check_names = [&](const char* what, const auto& named) {
    for (const auto& [name, value] : named) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      throw invalid_argument("[compile] {} given for output '{}', which model '{}' does not have; there are: {}", what,
                             name, model.name(), fmt::join(names, ", "));
    }
  };
  check_names("a loss is", options.loss.named());
  check_names("a loss weight is", options.loss_weights.named());
  check_names("metrics are", options.metrics.by_output);
  check_names("weighted metrics are", options.weighted_metrics.by_output);
  if (const size_t given = options.loss.listed().size(); given > n) {
    throw invalid_argument("[compile] {} losses are given, but model '{}' has {} output{}: {}", given, model.name(), n,
                           n == 1 ? "" : "s", fmt::join(names, ", "));
  }
  for (size_t i = 0; i < n; ++i) {
    Output out{.name = names[i]};
    const std::string prefix = n > 1 ? names[i] + "_" : "";
    if (const LossArg* loss = options.loss.find(i, n, names[i]); loss && *loss) {
      out.loss = loss->get();
      if (n > 1) out.loss_metric = std::make_shared<metrics::Mean>((prefix + "loss").c_str());
    }
    if (const double* weight = options.loss_weights.find(i, n, names[i])) out.weight = *weight;
    const auto resolve = [&](const MetricList& list, std::vector<MetricPtr>& into) {
      const auto named = list.by_output.find(names[i]);
      for (const MetricArg& arg : named != list.by_output.end() ? named->second : list.all) {
        if (i >= y_true.size()) continue;
        into.push_back(resolve_metric(arg, y_true[i].partial_shape(), y_pred[i].partial_shape(), prefix));
      }
    };
    resolve(options.metrics, out.metrics);
    resolve(options.weighted_metrics, out.weighted_metrics);
    made.push_back(std::move(out));
  }
  name_metrics_apart(made);
  outputs = std::move(made);
}

// Logs go by name, so every metric needs its own, and an object can serve one output only. A weighted metric beside the
// same without weights is called weighted_.
void Model::Training::name_metrics_apart(const std::vector<Output>& outputs) {
  std::set<std::string> names;
  std::set<const Metric*> seen;
  const auto add = [&](Metric& metric, bool weighted) {
    if (!seen.insert(&metric).second) {
      throw invalid_argument(
          "[compile] the metric object '{}' is given for several outputs, which would count together: give one for "
          "each, {{{{\"output\", {{metric}}}}, {{\"other\", {{...}}}}}}, or a name",
          metric.name());
    }
    if (weighted && names.contains(metric.name())) metric.set_name("weighted_" + metric.name());
    if (!names.insert(metric.name()).second) {
      throw invalid_argument(
          "[compile] Found two metrics with the same name: {}. All the metrics added to the model need to have unique "
          "names: {{.name = ...}} of an object, {{f, \"name\"}} of a function",
          metric.name());
    }
  };
  for (const Output& out : outputs) {
    for (const MetricPtr& metric : out.metrics) add(*metric, false);
    for (const MetricPtr& metric : out.weighted_metrics) add(*metric, true);
  }
}

std::vector<MetricPtr> Model::Training::all_metrics() const {
  std::vector<MetricPtr> all{loss_metric};
  for (const Output& out : outputs) {
    if (out.loss_metric) all.push_back(out.loss_metric);
  }
  for (const Output& out : outputs) {
    all.insert(all.end(), out.metrics.begin(), out.metrics.end());
    all.insert(all.end(), out.weighted_metrics.begin(), out.weighted_metrics.end());
  }
  return all;
}

std::vector<Metric*> Model::metrics() {
  std::vector<Metric*> members;
  std::vector<const Trackable*> met;
  add_metrics(*this, met, members);
  std::vector<Metric*> all;
  // A member takes the place of what compile made under its name: the loss_tracker of a step of one's own is "loss".
  for (const MetricPtr& made : training_ ? training_->all_metrics() : std::vector<MetricPtr>()) {
    const auto member = std::ranges::find(members, made->name(), &Metric::name);
    Metric* metric = member != members.end() ? *member : made.get();
    if (std::ranges::find(all, metric) == all.end()) all.push_back(metric);
  }
  for (Metric* member : members) {
    const auto is_member = [&](const Metric* known) { return known == member || counts_with(*known, *member); };
    if (std::ranges::none_of(all, is_member)) all.push_back(member);
  }
  return all;
}

// A model that names its metrics itself need not name those of compile: the steps made here report them nevertheless.
std::vector<Metric*> Model::reported_metrics() {
  const std::vector<Metric*> named = metrics();
  std::vector<Metric*> all;
  for (const MetricPtr& made : training_ ? training_->all_metrics() : std::vector<MetricPtr>()) {
    const auto same = std::ranges::find(named, made->name(), &Metric::name);
    Metric* metric = same != named.end() ? *same : made.get();
    if (std::ranges::find(all, metric) == all.end()) all.push_back(metric);
  }
  for (Metric* metric : named) {
    if (std::ranges::find(all, metric) == all.end()) all.push_back(metric);
  }
  return all;
}

std::vector<std::string> Model::metrics_names() {
  std::vector<std::string> names;
  for (const Metric* metric : metrics()) names.push_back(metric->name());
  return names;
}

void Model::reset_metrics() {
  for (Metric* metric : reported_metrics()) metric->reset_state();
}

Tensor Model::compute_loss(const TrainingBatch& batch, const Nest& y_pred) {
  const Tensor total = total_loss(batch, y_pred);
  if (total.defined()) return total;
  throw make_error(
      Code::failed_precondition,
      "[compute_loss] model '{}' has nothing to train for: give compile a .loss, or call add_loss in a layer", name());
}

// Without losses: undefined.
Tensor Model::total_loss(const TrainingBatch& batch, const Nest& y_pred) {
  Training& t = training();
  const std::vector<Tensor> predicted = nest::flatten(y_pred);
  const std::vector<Tensor> wanted = nest::flatten(batch.y);
  t.make_outputs(*this, wanted, predicted);
  Tensor total;
  for (size_t i = 0; i < predicted.size(); ++i) {
    Training::Output& out = t.outputs[i];
    if (!out.loss) continue;
    if (i >= wanted.size()) {
      throw invalid_argument(
          "[compute_loss] model '{}' has a loss for output '{}', but the data has {} labels for {} outputs (outputs: "
          "{})",
          name(), out.name, wanted.size(), predicted.size(), leaf_shapes(predicted));
    }
    const auto [y, p, weight] = losses::match_dtype_and_rank(wanted[i], predicted[i], batch.sample_weight);
    const Tensor loss = named_in_errors("the loss", out.name, name(), wanted[i], predicted[i],
                                        [&] { return (*out.loss)(y, p, weight, MaskScope::mask_of(predicted[i])); });
    if (out.loss_metric) out.loss_metric->update_state(loss, batch_size_of(wanted, DType::float32));
    const Tensor weighted = out.weight == 1 ? loss : loss * out.weight;
    total = total.defined() ? sum_of_losses(total, weighted) : weighted;
  }
  std::vector<Tensor> added = losses();
  if (!total.defined() && added.empty()) return {};
  for (const Tensor& loss : added) total = total.defined() ? sum_of_losses(total, loss) : loss;
  const std::vector<Tensor> x = nest::flatten(batch.x);
  t.loss_metric->update_state(total.dtype() == DType::float32 ? total : cast(total, DType::float32),
                              batch_size_of(x, DType::float32));
  return total;
}

StepLogs Model::compute_metrics(const TrainingBatch& batch, const Nest& y_pred) {
  update_metrics(batch, y_pred);
  return results_of(metrics());
}

StepLogs Model::results_of(const std::vector<Metric*>& all) {
  StepLogs logs;
  for (const Metric* metric : all) logs.emplace_back(metric->name(), metric->result());
  return logs;
}

void Model::update_metrics(const TrainingBatch& batch, const Nest& y_pred) {
  Training& t = training();
  const std::vector<Tensor> predicted = nest::flatten(y_pred);
  const std::vector<Tensor> wanted = nest::flatten(batch.y);
  t.make_outputs(*this, wanted, predicted);
  for (size_t i = 0; i < t.outputs.size() && i < wanted.size(); ++i) {
    const auto [y, p, weight] = losses::match_dtype_and_rank(wanted[i], predicted[i], batch.sample_weight);
    const Tensor counts = MaskScope::mask_of(predicted[i]);
    const auto update = [&](Metric& metric, const Tensor& sample_weight) {
      named_in_errors(fmt::format("metric '{}'", metric.name()), t.outputs[i].name, name(), wanted[i], predicted[i],
                      [&] { metric.update_state(y, p, sample_weight); });
    };
    for (const MetricPtr& metric : t.outputs[i].metrics) update(*metric, counts);
    for (const MetricPtr& metric : t.outputs[i].weighted_metrics) update(*metric, weight);
  }
}

// Trainable variables that the step read and that are no part of the model.
void Model::warn_of_strays(const GradientTape& tape) const {
  std::set<uint64_t> known;
  for (const Variable& v : weights()) known.insert(v.slot().id);
  std::vector<Variable> others = tape.watched_variables();
  std::erase_if(others, [&](const Variable& v) { return known.contains(v.slot().id); });
  std::string names;
  for (const Variable& v : StrayVariables::add(others)) names += (names.empty() ? "" : ", ") + v.name();
  if (names.empty()) return;
  log_warning(
      "[fit] model '{}' uses trainable variables that are no part of it, and does not train or save them: {}. Register "
      "the layers that are members with {{this, \"name\"}}, those held by shared_ptr and variables with "
      "track(\"name\", part)",
      name(), names);
}

// What was trainable when a step was first made after compile stays so, as in Keras: a step that is traced again, for
// batches of another size, trains the same as the others. Layers may have been built since then.
std::vector<Variable> Model::variables_to_train() {
  Training& t = training();
  if (!t.in_step) return trainable_variables();
  if (t.num_applied == t.trained.size()) t.trained.emplace_back();
  Training::Trainable& known = t.trained[t.num_applied++];
  if (const size_t count = weights().size(); known.variables.empty() || known.num_weights != count) {
    known = {trainable_variables(), count};
  }
  return known.variables;
}

void Model::warn_of_changed_trainable(const char* who) {
  Training& t = training();
  const auto& [before, num_weights] = t.after_step;
  if (t.warned_of_trainable || num_weights == 0 || num_weights != weights().size()) return;
  const std::vector<Variable> now = trainable_variables();
  const auto same = [](const Variable& a, const Variable& b) { return &a.slot() == &b.slot(); };
  if (std::ranges::equal(now, before, same)) return;
  t.warned_of_trainable = true;
  log_warning(
      "[{}] Discrepancy between trainable weights and collected trainable weights, did you set `model.trainable` "
      "without "
      "calling `model.compile` after? Model '{}' goes on training the {} weights that were trainable when its training "
      "began; now {} are: call compile again for that to count",
      who, name(), before.size(), now.size());
}

void Model::apply_gradients(const Tensor& loss, GradientTape& tape) {
  Optimizer& optimizer = *training().optimizer;
  const std::vector<Variable> variables = variables_to_train();
  if (variables.empty()) {
    const bool is_frozen = !weights().empty();
    throw make_error(Code::failed_precondition, "[fit] model '{}' has no trainable weights. {}", name(),
                     is_frozen ? "All its layers are frozen: set_trainable(true) of those that are to be trained"
                               : "Layers that are members must be registered: keras::Dense dense{this, \"dense\", "
                                 "{...}}; those held by shared_ptr are handed to track(\"name\", layer)");
  }
  warn_of_strays(tape);
  optimizer.minimize(loss, variables, tape, [this](const Variable& v) { return constraint_of(v); });
}

StepLogs Model::train_step(const TrainingBatch& batch) {
  const MaskScope masks;
  GradientTape tape;
  const Nest y_pred = (*this)(batch.x, {.training = true});
  const Tensor loss = compute_loss(batch, y_pred);
  apply_gradients(loss, tape);
  update_metrics(batch, y_pred);
  return results_of(reported_metrics());
}

StepLogs Model::test_step(const TrainingBatch& batch) {
  const MaskScope masks;
  const Nest y_pred = (*this)(batch.x, {.training = false});
  const bool measures = total_loss(batch, y_pred).defined() || training().all_metrics().size() > 1;
  if (!measures) {
    throw make_error(
        Code::failed_precondition,
        "[evaluate] model '{}' has neither a loss nor metrics to evaluate: give them to compile; a model with "
        "a train_step of its own needs a test_step of its own",
        name());
  }
  update_metrics(batch, y_pred);
  return results_of(reported_metrics());
}

Nest Model::predict_step(const Nest& x) { return (*this)(x, {.training = false}); }

}  // namespace runnel::keras
