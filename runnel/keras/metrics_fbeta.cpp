#include "runnel/keras/metrics_fbeta.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras::metrics {

FBetaScore::FBetaScore(FBetaScoreOptions options) : MetricOf(std::move(options)) {
  const std::optional<std::string>& average = options_.average;
  if (average && average != "micro" && average != "macro" && average != "weighted") {
    throw invalid_argument("[{}] average must be micro, macro, weighted or nothing, got '{}'", name(), *average);
  }
  if (!(options_.beta > 0)) throw invalid_argument("[{}] beta must be positive, got {}", name(), options_.beta);
  if (options_.threshold && !(*options_.threshold > 0 && *options_.threshold <= 1)) {
    throw invalid_argument("[{}] threshold must lie in (0, 1], got {}", name(), *options_.threshold);
  }
}

// The variables are made with the first batch, which tells the number of classes.
void FBetaScore::build(const PartialShape& y_true, const PartialShape& y_pred) {
  if (y_true.rank() != 2 || y_pred.rank() != 2 || !y_true.compatible_with(y_pred)) {
    throw invalid_argument("[{}] y_true and y_pred must both be [batch, classes], got {} and {}", name(), y_true.str(),
                           y_pred.str());
  }
  if (true_positives_.defined()) return;
  const int64_t classes = y_pred[1] >= 0 ? y_pred[1] : y_true[1];
  if (classes < 0)
    throw invalid_argument("[{}] the number of classes is not known: y_pred is {}", name(), y_pred.str());
  const Shape shape = options_.average == "micro" ? Shape{} : Shape{classes};
  true_positives_ = add_weight("true_positives", shape);
  false_positives_ = add_weight("false_positives", shape);
  false_negatives_ = add_weight("false_negatives", shape);
  intermediate_weights_ = add_weight("intermediate_weights", shape);
}

void FBetaScore::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const Tensor scores = predictions(y_pred);
  build(y_true.partial_shape(), scores.partial_shape());
  const Tensor truth = losses::to_dtype(y_true, dtype());
  Tensor chosen;
  if (options_.threshold) {
    chosen = scores > *options_.threshold;
  } else {
    // A row of zeros predicts nothing, though each of its zeros is its largest.
    chosen = logical_and(scores >= reduce_max(scores, -1, true), abs(scores) > 1e-9);
  }
  const Tensor guess = cast(chosen, dtype());
  const auto add = [&](const Variable& variable, Tensor amount) {
    if (sample_weight.defined()) amount = amount * losses::match_weight(name(), sample_weight, amount);
    variable.assign_add(options_.average == "micro" ? reduce_sum(amount) : reduce_sum(amount, 0));
  };
  add(true_positives_, guess * truth);
  add(false_positives_, guess * (1 - truth));
  add(false_negatives_, (1 - guess) * truth);
  add(intermediate_weights_, truth);
}

Tensor FBetaScore::result() const {
  if (!true_positives_.defined()) {
    throw make_error(Code::failed_precondition, "[{}] has no result before the first update_state", name());
  }
  const Tensor right = true_positives_;
  const Tensor precision = divide_no_nan(right, right + false_positives_);
  const Tensor recall = divide_no_nan(right, right + false_negatives_);
  const double square = options_.beta * options_.beta;
  const Tensor score = (1 + square) * divide_no_nan(precision * recall, square * precision + recall);
  if (options_.average == "weighted") {
    const Tensor weight = intermediate_weights_;
    return reduce_sum(score * divide_no_nan(weight, reduce_sum(weight)));
  }
  return options_.average == "macro" ? reduce_mean(score) : score;
}

F1Score::F1Score(const F1ScoreOptions& options)
    : FBetaScore({.average = options.average,
                  .beta = 1,
                  .threshold = options.threshold,
                  .name = options.name.empty() ? "f1_score" : options.name,
                  .dtype = options.dtype}) {}

Config F1Score::get_config() const {
  // NOLINTNEXTLINE(bugprone-parent-virtual-call): not FBetaScore's options
  return with_options(Metric::get_config(), options());
}

F1ScoreOptions F1Score::options() const {
  return {.average = options_.average, .threshold = options_.threshold, .name = options_.name, .dtype = dtype()};
}

}  // namespace runnel::keras::metrics
