#include "runnel/keras/metrics_confusion.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/control.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras::metrics {
namespace {

constexpr double kBelowAll = -1e10;

void check_thresholds(const std::string& who, const std::vector<double>& thresholds) {
  for (const double t : thresholds) {
    if (t < 0 || t > 1) throw invalid_argument("[{}] thresholds must lie in [0, 1], got {}", who, t);
  }
}

void check_probabilities(const ConfusionRequest& request, const Tensor& y_pred) {
  const Tensor inside = reduce_all(logical_and(y_pred >= 0, y_pred <= 1));
  if (inside.is_symbolic()) {
    const std::string text =
        fmt::format("[{}] predictions must lie in [0, 1]: {}; they are", request.who, request.advice);
    assert_(inside, {Tensor(text), y_pred});
  } else if (!inside) {
    throw invalid_argument("[{}] predictions must lie in [0, 1], got {} to {}: {}", request.who,
                           cast(reduce_min(y_pred), DType::float64).item<double>(),
                           cast(reduce_max(y_pred), DType::float64).item<double>(), request.advice);
  }
}

// What is not among the k largest of its row can never be positive.
Tensor only_top_k(const Tensor& y_pred, int64_t k) {
  const Tensor best = math::top_k(y_pred, k).indices;
  const Tensor chosen = reduce_sum(one_hot(best, shape(y_pred)[-1], -1, y_pred.dtype()), -2);
  return where(chosen > 0, y_pred, kBelowAll);
}

// The last dimension at one position, kept with size 1 so that weights still fit.
Tensor only_class(const Tensor& t, int64_t id) { return expand_dims(gather(t, id, -1), -1); }

// The sums of `amounts` (a vector) where the prediction is above each threshold.
Tensor sums_above(const ConfusionRequest& request, const Tensor& y_pred, const Tensor& amounts) {
  const auto n = static_cast<int64_t>(request.thresholds.size());
  if (!request.evenly_spaced) {
    const Tensor thresholds = cast(Tensor::of<double>(request.thresholds, {n, 1}), y_pred.dtype());
    return reduce_sum(where(expand_dims(y_pred, 0) > thresholds, amounts, 0), 1);
  }
  // A prediction counts for the thresholds strictly below it, so one that equals a threshold belongs to the bucket
  // below. Bucket -1 is above no threshold and is left out.
  Tensor bucket = ceil(y_pred * (n - 1)) - 1;
  if (request.thresholds.front() < 0) bucket = nn::relu(bucket);
  // In a graph the check of the predictions may run later than this, and is to be what fails.
  if (bucket.is_symbolic()) bucket = minimum(bucket, n - 1);
  return cumsum(math::unsorted_segment_sum(amounts, cast(bucket, DType::int32), n), 0, false, true);
}

Tensor one_or_all(const Tensor& values, size_t thresholds) {
  return thresholds == 1 ? reshape(values, Shape{}) : values;
}

std::vector<double> or_half(const std::vector<double>& thresholds) {
  return thresholds.empty() ? std::vector<double>{0.5} : thresholds;
}

// Thresholds that were not given are written as null.
Config with_thresholds(Config config, const std::vector<double>& given) {
  config.set("thresholds", given.empty() ? Config() : Config(given));
  return config;
}

ConfusionRequest precision_request(const std::string& who, const PrecisionOptions& options) {
  check_thresholds(who, options.thresholds);
  if (options.top_k && *options.top_k <= 0) {
    throw invalid_argument("[{}] top_k must be positive, got {}", who, *options.top_k);
  }
  const bool no_threshold = options.top_k && options.thresholds.empty();
  return {.who = who,
          .thresholds = no_threshold ? std::vector<double>{kBelowAll} : or_half(options.thresholds),
          .top_k = options.top_k,
          .class_id = options.class_id,
          .dtype = options.dtype};
}

Shape per_threshold(const ConfusionRequest& request) { return {static_cast<int64_t>(request.thresholds.size())}; }

const char* kind_name(ConfusionKind kind) {
  switch (kind) {
    case ConfusionKind::true_positives: return "TruePositives";
    case ConfusionKind::false_positives: return "FalsePositives";
    case ConfusionKind::true_negatives: return "TrueNegatives";
    case ConfusionKind::false_negatives: return "FalseNegatives";
  }
  return "";
}

}  // namespace

Tensor ConfusionCounts::false_negatives() const { return positives - true_positives; }
Tensor ConfusionCounts::true_negatives() const { return negatives - false_positives; }

ConfusionCounts confusion_counts(const ConfusionRequest& request, const Tensor& y_true, const Tensor& y_pred,
                                 const Tensor& sample_weight) {
  const losses::Matched matched = losses::match_ranks(y_true, losses::to_dtype(y_pred, request.dtype));
  Tensor truth = not_equal(matched.y_true, zeros_like(matched.y_true));
  Tensor guess = matched.y_pred;
  if (!truth.partial_shape().compatible_with(guess.partial_shape())) {
    throw invalid_argument("[{}] y_true of shape {} does not fit y_pred of shape {}", request.who,
                           y_true.partial_shape().str(), y_pred.partial_shape().str());
  }
  check_probabilities(request, guess);
  if (request.top_k) guess = only_top_k(guess, *request.top_k);
  if (request.class_id) {
    truth = only_class(truth, *request.class_id);
    guess = only_class(guess, *request.class_id);
  }
  Tensor weight = ones_like(guess);
  if (sample_weight.defined()) weight = weight * losses::match_weight(request.who, sample_weight, guess);
  if (!request.label_weights.empty())
    weight =
        weight * cast(Tensor::of<double>(request.label_weights, {static_cast<int64_t>(request.label_weights.size())}),
                      weight.dtype());
  const Tensor flat = reshape(guess, {-1});
  const Tensor positive = reshape(where(truth, weight, 0), {-1});
  const Tensor negative = reshape(where(truth, 0, weight), {-1});
  return {sums_above(request, flat, positive), sums_above(request, flat, negative), reduce_sum(positive),
          reduce_sum(negative)};
}

ConfusionCount::ConfusionCount(ConfusionKind kind, const ConfusionOptions& options)
    : Metric(options.name, options.dtype), kind_(kind), options_(options), thresholds_(or_half(options.thresholds)) {
  check_thresholds(kind_name(kind), thresholds_);
  track_empty("thresholds");
  accumulator_ = add_weight("accumulator", {static_cast<int64_t>(thresholds_.size())});
}

void ConfusionCount::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const ConfusionRequest request{.who = name(), .thresholds = thresholds_, .dtype = dtype()};
  const ConfusionCounts counts = confusion_counts(request, y_true, predictions(y_pred), sample_weight);
  switch (kind_) {
    case ConfusionKind::true_positives: accumulator_.assign_add(counts.true_positives); break;
    case ConfusionKind::false_positives: accumulator_.assign_add(counts.false_positives); break;
    case ConfusionKind::true_negatives: accumulator_.assign_add(counts.true_negatives()); break;
    case ConfusionKind::false_negatives: accumulator_.assign_add(counts.false_negatives()); break;
  }
}

Tensor ConfusionCount::result() const { return one_or_all(accumulator_, thresholds_.size()); }

std::string ConfusionCount::class_name() const { return kind_name(kind_); }

Config ConfusionCount::get_config() const { return with_thresholds(Metric::get_config(), options_.thresholds); }

Precision::Precision(PrecisionOptions options)
    : MetricOf(std::move(options)), request_(precision_request("Precision", options_)) {
  track_empty("thresholds");
  true_positives_ = add_weight("true_positives", per_threshold(request_));
  false_positives_ = add_weight("false_positives", per_threshold(request_));
}

void Precision::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const ConfusionCounts counts = confusion_counts(request_, y_true, predictions(y_pred), sample_weight);
  true_positives_.assign_add(counts.true_positives);
  false_positives_.assign_add(counts.false_positives);
}

Tensor Precision::result() const {
  const Tensor right = true_positives_;
  return one_or_all(divide_no_nan(right, right + false_positives_), request_.thresholds.size());
}

Config Precision::get_config() const { return with_thresholds(MetricOf::get_config(), options_.thresholds); }

Recall::Recall(PrecisionOptions options)
    : MetricOf(std::move(options)), request_(precision_request("Recall", options_)) {
  track_empty("thresholds");
  true_positives_ = add_weight("true_positives", per_threshold(request_));
  false_negatives_ = add_weight("false_negatives", per_threshold(request_));
}

void Recall::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const ConfusionCounts counts = confusion_counts(request_, y_true, predictions(y_pred), sample_weight);
  true_positives_.assign_add(counts.true_positives);
  false_negatives_.assign_add(counts.false_negatives());
}

Tensor Recall::result() const {
  const Tensor right = true_positives_;
  return one_or_all(divide_no_nan(right, right + false_negatives_), request_.thresholds.size());
}

Config Recall::get_config() const { return with_thresholds(MetricOf::get_config(), options_.thresholds); }

}  // namespace runnel::keras::metrics
