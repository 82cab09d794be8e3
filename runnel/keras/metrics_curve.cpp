#include "runnel/keras/metrics_curve.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras::metrics {
namespace {

// 0, 1/(n-1), ..., 1; the ends moved outwards by `margin`, so that every prediction lies between them.
std::vector<double> spread_thresholds(const std::string& who, int64_t n, double margin) {
  if (n <= 1) throw invalid_argument("[{}] num_thresholds must be more than 1, got {}", who, n);
  std::vector<double> thresholds;
  for (int64_t i = 0; i < n; ++i) thresholds.push_back(static_cast<double>(i) / static_cast<double>(n - 1));
  thresholds.front() -= margin;
  thresholds.back() += margin;
  return thresholds;
}

ConfusionRequest area_request(const AUCOptions& options) {
  ConfusionRequest request{
      .who = "AUC", .dtype = options.dtype, .advice = "where they are logits, make it AUC({.from_logits = true})"};
  if (!options.multi_label) request.label_weights = options.label_weights;
  request.evenly_spaced = options.thresholds.empty();
  if (request.evenly_spaced) {
    request.thresholds = spread_thresholds("AUC", options.num_thresholds, losses::kEpsilon);
    return request;
  }
  for (const double t : options.thresholds) {
    if (t < 0 || t > 1) throw invalid_argument("[AUC] thresholds must lie in [0, 1], got {}", t);
  }
  request.thresholds = options.thresholds;
  std::ranges::sort(request.thresholds);
  request.thresholds.insert(request.thresholds.begin(), -losses::kEpsilon);
  request.thresholds.push_back(1 + losses::kEpsilon);
  return request;
}

struct CurvePointText {
  const char* class_name;
  const char* setting;
};
CurvePointText text_of(CurvePointKind kind) {
  switch (kind) {
    case CurvePointKind::sensitivity_at_specificity: return {"SensitivityAtSpecificity", "specificity"};
    case CurvePointKind::specificity_at_sensitivity: return {"SpecificityAtSensitivity", "sensitivity"};
    case CurvePointKind::precision_at_recall: return {"PrecisionAtRecall", "recall"};
    case CurvePointKind::recall_at_precision: return {"RecallAtPrecision", "precision"};
  }
  return {"", ""};
}

ConfusionRequest point_request(CurvePointKind kind, const CurvePointOptions& options) {
  const CurvePointText text = text_of(kind);
  if (options.value < 0 || options.value > 1) {
    throw invalid_argument("[{}] {} must lie in [0, 1], got {}", text.class_name, text.setting, options.value);
  }
  ConfusionRequest request{.who = text.class_name, .class_id = options.class_id, .dtype = options.dtype};
  request.evenly_spaced = options.num_thresholds != 1;
  request.thresholds =
      request.evenly_spaced ? spread_thresholds(text.class_name, options.num_thresholds, 0) : std::vector<double>{0.5};
  return request;
}

// The rows but the last, and but the first: the ends of the steps of a curve.
Tensor starts(const Tensor& t) { return t(slice(0, -1)); }
Tensor ends(const Tensor& t) { return t(slice(1, none)); }

int64_t labels_of(const AUCOptions& options) {
  if (!options.multi_label) return 0;
  if (!options.num_labels || *options.num_labels < 1) {
    throw invalid_argument("[AUC] multi_label needs num_labels, the size of the last dimension of the predictions");
  }
  if (!options.label_weights.empty() && static_cast<int64_t>(options.label_weights.size()) != *options.num_labels) {
    throw invalid_argument("[AUC] there are {} label_weights for {} labels", options.label_weights.size(),
                           *options.num_labels);
  }
  return *options.num_labels;
}

}  // namespace

CurveMetric::CurveMetric(std::string name, DType dtype, ConfusionRequest request, int64_t labels)
    : Metric(std::move(name), dtype), request_(std::move(request)), labels_(labels) {
  const auto thresholds = static_cast<int64_t>(request_.thresholds.size());
  const Shape shape = labels > 0 ? Shape{thresholds, labels} : Shape{thresholds};
  true_positives_ = add_weight("true_positives", shape);
  true_negatives_ = add_weight("true_negatives", shape);
  false_positives_ = add_weight("false_positives", shape);
  false_negatives_ = add_weight("false_negatives", shape);
}

void CurveMetric::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  if (labels_ == 0) {
    const ConfusionCounts counts = confusion_counts(request_, y_true, predictions(y_pred), sample_weight);
    true_positives_.assign_add(counts.true_positives);
    true_negatives_.assign_add(counts.true_negatives());
    false_positives_.assign_add(counts.false_positives);
    false_negatives_.assign_add(counts.false_negatives());
    return;
  }
  const PartialShape& shape = y_pred.partial_shape();
  if (shape.rank() != 2 || (shape[1] != kUnknownDim && shape[1] != labels_)) {
    throw invalid_argument("[{}] counts {} labels apart and needs predictions of shape [batch, {}], got {}",
                           request_.who, labels_, labels_, shape.str());
  }
  std::vector<Tensor> true_positives, true_negatives, false_positives, false_negatives;
  ConfusionRequest of_label = request_;
  for (int64_t i = 0; i < labels_; ++i) {
    of_label.class_id = i;
    const ConfusionCounts counts = confusion_counts(of_label, y_true, predictions(y_pred), sample_weight);
    true_positives.push_back(counts.true_positives);
    true_negatives.push_back(counts.true_negatives());
    false_positives.push_back(counts.false_positives);
    false_negatives.push_back(counts.false_negatives());
  }
  true_positives_.assign_add(stack(true_positives, 1));
  true_negatives_.assign_add(stack(true_negatives, 1));
  false_positives_.assign_add(stack(false_positives, 1));
  false_negatives_.assign_add(stack(false_negatives, 1));
}

Tensor CurveMetric::recalls() const {
  const Tensor right = true_positives_;
  return divide_no_nan(right, right + false_negatives_);
}
Tensor CurveMetric::precisions() const {
  const Tensor right = true_positives_;
  return divide_no_nan(right, right + false_positives_);
}
Tensor CurveMetric::specificities() const {
  const Tensor right = true_negatives_;
  return divide_no_nan(right, right + false_positives_);
}

AUC::AUC(AUCOptions options)
    : CurveMetric(options.name, options.dtype, area_request(options), labels_of(options)),
      options_(std::move(options)) {
  if (options_.curve != "ROC" && options_.curve != "PR") {
    throw invalid_argument("[AUC] curve must be ROC or PR, got '{}'", options_.curve);
  }
  for (const char* known : {"interpolation", "minoring", "majoring"}) {
    if (options_.summation_method == known) return;
  }
  throw invalid_argument("[AUC] summation_method must be interpolation, minoring or majoring, got '{}'",
                         options_.summation_method);
}

void AUC::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const Tensor guess = predictions(y_pred);
  CurveMetric::update_state(y_true, options_.from_logits ? sigmoid(guess) : guess, sample_weight);
}

Tensor AUC::result() const {
  const Tensor each = areas();
  if (labels_ == 0) return each;
  if (options_.label_weights.empty()) return reduce_mean(each);
  const Tensor weights =
      cast(Tensor::of<double>(options_.label_weights, {static_cast<int64_t>(options_.label_weights.size())}), dtype());
  return divide_no_nan(reduce_sum(each * weights), reduce_sum(weights));
}

Tensor AUC::areas() const {
  if (options_.curve == "PR" && options_.summation_method == "interpolation") return interpolated_pr_areas();
  Tensor x = recalls();
  Tensor y;
  if (options_.curve == "ROC") {
    y = x;
    const Tensor wrong = false_positives_;
    x = divide_no_nan(wrong, wrong + true_negatives_);
  } else {
    y = precisions();
  }
  Tensor heights;
  if (options_.summation_method == "interpolation") {
    heights = (starts(y) + ends(y)) / 2;
  } else {
    heights = options_.summation_method == "minoring" ? minimum(starts(y), ends(y)) : maximum(starts(y), ends(y));
  }
  return reduce_sum((starts(x) - ends(x)) * heights, 0);
}

// Between two thresholds true positives grow linearly with all positives, so precision does not: the area under it is
// a logarithm (Davis and Goadrich, "The relationship between precision-recall and ROC curves", 2006).
Tensor AUC::interpolated_pr_areas() const {
  const Tensor right = true_positives_;
  const Tensor found = right + false_positives_;
  const Tensor more_right = starts(right) - ends(right);
  const Tensor more_found = starts(found) - ends(found);
  const Tensor slope = divide_no_nan(more_right, maximum(more_found, 0));
  const Tensor intercept = ends(right) - slope * ends(found);
  const Tensor growth =
      where(logical_and(starts(found) > 0, ends(found) > 0), divide_no_nan(starts(found), maximum(ends(found), 0)), 1);
  const Tensor all = ends(right) + ends(Tensor(false_negatives_));
  return reduce_sum(divide_no_nan(slope * (more_right + intercept * log(growth)), maximum(all, 0)), 0);
}

Config AUC::get_config() const {
  Config config = Metric::get_config();
  for (auto& [key, value] : options_to_config(options_)) {
    if (key != "thresholds") config.set(key, std::move(value));
  }
  config.set("num_thresholds", static_cast<int64_t>(request_.thresholds.size()));
  if (options_.label_weights.empty()) config.set("label_weights", Config());
  // Only those that were given, without the ends that were added.
  if (!options_.thresholds.empty()) {
    config.set("thresholds", std::vector<double>(request_.thresholds.begin() + 1, request_.thresholds.end() - 1));
  }
  return config;
}

CurvePoint::CurvePoint(CurvePointKind kind, const CurvePointOptions& options)
    : CurveMetric(options.name, options.dtype, point_request(kind, options)), kind_(kind), options_(options) {}

Tensor CurvePoint::result() const {
  Tensor reached;
  Tensor wanted;
  switch (kind_) {
    case CurvePointKind::sensitivity_at_specificity: reached = specificities(), wanted = recalls(); break;
    case CurvePointKind::specificity_at_sensitivity: reached = recalls(), wanted = specificities(); break;
    case CurvePointKind::precision_at_recall: reached = recalls(), wanted = precisions(); break;
    case CurvePointKind::recall_at_precision: reached = precisions(), wanted = recalls(); break;
  }
  return reduce_max(where(reached >= options_.value, wanted, 0));
}

std::string CurvePoint::class_name() const { return text_of(kind_).class_name; }

Config CurvePoint::get_config() const {
  Config config = Metric::get_config();
  config.set("num_thresholds", options_.num_thresholds);
  config.set(text_of(kind_).setting, options_.value);
  config.set("class_id", config_value(options_.class_id));
  return config;
}

}  // namespace runnel::keras::metrics
