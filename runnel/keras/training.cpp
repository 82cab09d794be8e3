#include "runnel/keras/training.h"

#include "runnel/base/format.h"
#include "runnel/function/function.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/loss_scale_optimizer.h"
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

std::string leaf_shapes(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& t : tensors) text += (text.empty() ? "" : ", ") + t.partial_shape().str();
  return text;
}

}  // namespace

void Model::compile(CompileOptions options) {
  training_ = std::make_unique<Training>(std::move(options));
  if (dtype_policy().name() == "mixed_float16" &&
      !std::dynamic_pointer_cast<mixed_precision::LossScaleOptimizer>(training_->optimizer)) {
    training_->optimizer = std::make_shared<mixed_precision::LossScaleOptimizer>(training_->optimizer);
  }
  training_->loss_metric = std::make_shared<metrics::Mean>("loss");
}

Model::Training& Model::training() const {
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
  if (training_) training_->train = training_->test = nullptr;
}

void Model::Training::make_outputs(const Model& model, const std::vector<Tensor>& y_true,
                                   const std::vector<Tensor>& y_pred) {
  const size_t n = y_pred.size();
  const std::vector<std::string> names = model.output_names(n);
  if (!options.loss.named().empty()) {
    for (const auto& [name, loss] : options.loss.named()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw invalid_argument(
            "[compile] a loss is given for output '{}', which model '{}' does not have; there are: {}", name,
            model.name(), fmt::join(names, ", "));
      }
    }
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
    outputs.push_back(std::move(out));
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

std::vector<MetricPtr> Model::metrics() const {
  return training_ ? training_->all_metrics() : std::vector<MetricPtr>();
}

std::vector<std::string> Model::metrics_names() const {
  std::vector<std::string> names;
  for (const MetricPtr& metric : metrics()) names.push_back(metric->name());
  return names;
}

void Model::reset_metrics() {
  for (const MetricPtr& metric : metrics()) metric->reset_state();
}

Tensor Model::compute_loss(const TrainingBatch& batch, const Nest& y_pred) {
  Training& t = training();
  const std::vector<Tensor> predicted = nest::flatten(y_pred);
  const std::vector<Tensor> wanted = nest::flatten(batch.y);
  if (t.outputs.empty()) {
    const OutsideTrace outside;  // metrics have variables
    t.make_outputs(*this, wanted, predicted);
  }
  Tensor total;
  for (size_t i = 0; i < predicted.size(); ++i) {
    Training::Output& out = t.outputs[i];
    if (!out.loss) continue;
    if (i >= wanted.size()) {
      throw invalid_argument(
          "[fit] model '{}' has a loss for output '{}', but the data has {} labels for {} outputs (outputs: {})",
          name(), out.name, wanted.size(), predicted.size(), leaf_shapes(predicted));
    }
    const auto [y, p, weight] = losses::match_dtype_and_rank(wanted[i], predicted[i], batch.sample_weight);
    const Tensor loss = (*out.loss)(y, p, weight, MaskScope::mask_of(predicted[i]));
    if (out.loss_metric) out.loss_metric->update_state(loss, batch_size_of(wanted, DType::float32));
    const Tensor weighted = out.weight == 1 ? loss : loss * out.weight;
    total = total.defined() ? sum_of_losses(total, weighted) : weighted;
  }
  std::vector<Tensor> added = losses();
  if (!total.defined() && added.empty()) {
    throw make_error(Code::failed_precondition,
                     "[fit] model '{}' has nothing to train for: give compile a .loss, or call add_loss in a layer",
                     name());
  }
  for (const Tensor& loss : added) total = total.defined() ? sum_of_losses(total, loss) : loss;
  const std::vector<Tensor> x = nest::flatten(batch.x);
  t.loss_metric->update_state(total.dtype() == DType::float32 ? total : cast(total, DType::float32),
                              batch_size_of(x, DType::float32));
  return total;
}

StepLogs Model::compute_metrics(const TrainingBatch& batch, const Nest& y_pred) {
  Training& t = training();
  const std::vector<Tensor> predicted = nest::flatten(y_pred);
  const std::vector<Tensor> wanted = nest::flatten(batch.y);
  for (size_t i = 0; i < t.outputs.size() && i < wanted.size(); ++i) {
    const auto [y, p, weight] = losses::match_dtype_and_rank(wanted[i], predicted[i], batch.sample_weight);
    const Tensor counts = MaskScope::mask_of(predicted[i]);
    for (const MetricPtr& metric : t.outputs[i].metrics) metric->update_state(y, p, counts);
    for (const MetricPtr& metric : t.outputs[i].weighted_metrics) metric->update_state(y, p, weight);
  }
  StepLogs logs;
  for (const MetricPtr& metric : t.all_metrics()) logs.emplace_back(metric->name(), metric->result());
  return logs;
}

void Model::apply_gradients(const Tensor& loss, GradientTape& tape) {
  Optimizer& optimizer = *training().optimizer;
  const std::vector<Variable> variables = trainable_variables();
  if (variables.empty()) {
    throw make_error(Code::failed_precondition, "[fit] model '{}' has no trainable weights", name());
  }
  optimizer.minimize(loss, variables, tape, [this](const Variable& v) { return constraint_of(v); });
}

StepLogs Model::train_step(const TrainingBatch& batch) {
  const MaskScope masks;
  GradientTape tape;
  const Nest y_pred = (*this)(batch.x, {.training = true});
  const Tensor loss = compute_loss(batch, y_pred);
  apply_gradients(loss, tape);
  return compute_metrics(batch, y_pred);
}

StepLogs Model::test_step(const TrainingBatch& batch) {
  const MaskScope masks;
  const Nest y_pred = (*this)(batch.x, {.training = false});
  compute_loss(batch, y_pred);
  return compute_metrics(batch, y_pred);
}

Nest Model::predict_step(const Nest& x) { return (*this)(x, {.training = false}); }

}  // namespace runnel::keras
