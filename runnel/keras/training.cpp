#include "runnel/keras/training.h"

#include <algorithm>
#include <set>

#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/loss_scale_optimizer.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"

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
  training_->seen_trainable_change = last_trainable_change();
  training_->compiled_trainable = trainable_flags();
  accept_trainable();
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

Optimizer& Model::optimizer(SourceSite where) const {
  return composed(where, [&]() -> Optimizer& { return *training().optimizer; });
}

void Model::forget_training_functions() {
  prediction_ = nullptr;
  if (!training_) return;
  training_->train = training_->test = nullptr;
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
        if (i >= y_true.size() || !y_true[i].defined()) continue;
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

Tensor Model::compute_loss(const TrainingBatch& batch, const Nest& y_pred, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    const Tensor total = total_loss(batch, y_pred);
    if (total.defined()) return total;
    throw make_error(
        Code::failed_precondition,
        "[compute_loss] model '{}' has nothing to train for: give compile a .loss, or call add_loss in a layer",
        name());
  });
}

// Without losses: undefined.
Tensor Model::total_loss(const TrainingBatch& batch, const Nest& y_pred) {
  Training& t = training();
  const std::vector<Tensor> predicted = nest::flatten(y_pred);
  const std::vector<Tensor> wanted = Training::by_output(*this, "labels", batch.y, y_pred);
  const std::vector<Tensor> weights = Training::weights_by_output(*this, batch, y_pred);
  t.make_outputs(*this, wanted, predicted);
  Tensor total;
  for (size_t i = 0; i < predicted.size(); ++i) {
    Training::Output& out = t.outputs[i];
    if (!out.loss) continue;
    if (i < wanted.size() && !wanted[i].defined()) {
      throw invalid_argument(
          "[compute_loss] model '{}' has a loss for output '{}', but the map of labels has no entry '{}'; it has: {}",
          name(), out.name, out.name, fmt::join(batch.y.keys(), ", "));
    }
    if (i >= wanted.size()) {
      throw invalid_argument(
          "[compute_loss] model '{}' has a loss for output '{}', but the data has {} labels for {} outputs (outputs: "
          "{})",
          name(), out.name, wanted.size(), predicted.size(), leaf_shapes(predicted));
    }
    const auto [y, p, weight] = losses::match_dtype_and_rank(wanted[i], predicted[i], weights[i]);
    const Tensor loss = named_in_errors("the loss", out.name, name(), wanted[i], predicted[i],
                                        [&] { return (*out.loss)(y, p, weight, MaskScope::mask_of(predicted[i])); });
    if (out.loss_metric) out.loss_metric->update_state(loss, batch_size_of({wanted[i]}, DType::float32));
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

StepLogs Model::compute_metrics(const TrainingBatch& batch, const Nest& y_pred, SourceSite where) {
  return composed(where, [&] {
    update_metrics(batch, y_pred);
    return results_of(metrics());
  });
}

void Model::update_metrics(const TrainingBatch& batch, const Nest& y_pred) {
  Training& t = training();
  const std::vector<Tensor> predicted = nest::flatten(y_pred);
  const std::vector<Tensor> wanted = Training::by_output(*this, "labels", batch.y, y_pred);
  const std::vector<Tensor> weights = Training::weights_by_output(*this, batch, y_pred);
  t.make_outputs(*this, wanted, predicted);
  for (size_t i = 0; i < t.outputs.size() && i < wanted.size(); ++i) {
    if (!wanted[i].defined()) continue;
    const auto [y, p, weight] = losses::match_dtype_and_rank(wanted[i], predicted[i], weights[i]);
    const Tensor counts = MaskScope::mask_of(predicted[i]);
    const auto update = [&](Metric& metric, const Tensor& sample_weight) {
      named_in_errors(fmt::format("metric '{}'", metric.name()), t.outputs[i].name, name(), wanted[i], predicted[i],
                      [&] { metric.update_state(y, p, sample_weight); });
    };
    for (const MetricPtr& metric : t.outputs[i].metrics) update(*metric, counts);
    for (const MetricPtr& metric : t.outputs[i].weighted_metrics) update(*metric, weight);
  }
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
