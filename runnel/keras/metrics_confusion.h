#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runnel/keras/metrics_base.h"

// Metrics of binary decisions: a prediction above a threshold counts as positive. Labels are true where they are not 0;
// predictions must lie in [0, 1].
namespace runnel::keras::metrics {

// For every threshold the weight of positive and negative labels whose prediction lies above it, and of all of them.
struct ConfusionCounts {
  Tensor true_positives;   // [thresholds]
  Tensor false_positives;  // [thresholds]
  Tensor positives;        // []
  Tensor negatives;        // []
  Tensor false_negatives() const;
  Tensor true_negatives() const;
};
struct ConfusionRequest {
  std::string who;  // the metric, for errors
  std::vector<double> thresholds;
  // The thresholds are i / (n - 1), but for the first, which may lie below 0, and the last: predictions are sorted into
  // buckets between them instead of being compared with each.
  bool evenly_spaced = false;
  std::optional<int64_t> top_k = {};       // only the k largest of the last dimension can be positive
  std::optional<int64_t> class_id = {};    // only this position of the last dimension counts
  std::vector<double> label_weights = {};  // of the positions of the last dimension
  DType dtype = DType::float32;
  // What helps where predictions are not in [0, 1].
  std::string advice = "bring logits there first, by sigmoid or softmax or as the last activation of the model";
};
ConfusionCounts confusion_counts(const ConfusionRequest& request, const Tensor& y_true, const Tensor& y_pred,
                                 const Tensor& sample_weight);

struct ConfusionOptions {
  std::vector<double> thresholds = {};
  std::string name = {};
  DType dtype = DType::float32;
  static constexpr auto fields() {
    return field_list(field("thresholds", &ConfusionOptions::thresholds, "0.5 unless given"));
  }
};

enum class ConfusionKind { true_positives, false_positives, true_negatives, false_negatives };

// One of the four counts; a vector where there are several thresholds.
class RUNNEL_API ConfusionCount : public Metric {
 public:
  ConfusionCount(ConfusionKind kind, const ConfusionOptions& options);
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override;
  std::string class_name() const override;
  Config get_config() const override;
  const ConfusionOptions& options() const { return options_; }

 private:
  ConfusionKind kind_;
  ConfusionOptions options_;
  std::vector<double> thresholds_;
  Variable accumulator_;
};
template <ConfusionKind kind>
class ConfusionCountOf : public ConfusionCount {
 public:
  using Options = ConfusionOptions;
  explicit ConfusionCountOf(const ConfusionOptions& options = {}) : ConfusionCount(kind, options) {}
};
using TruePositives = ConfusionCountOf<ConfusionKind::true_positives>;
using FalsePositives = ConfusionCountOf<ConfusionKind::false_positives>;
using TrueNegatives = ConfusionCountOf<ConfusionKind::true_negatives>;
using FalseNegatives = ConfusionCountOf<ConfusionKind::false_negatives>;

struct PrecisionOptions {
  std::vector<double> thresholds = {};
  std::optional<int64_t> top_k = {};
  std::optional<int64_t> class_id = {};
  std::string name = {};
  DType dtype = DType::float32;
  static constexpr auto fields() {
    return field_list(field("thresholds", &PrecisionOptions::thresholds, "0.5 unless given; with top_k, none"),
                      field("top_k", &PrecisionOptions::top_k, "only the k largest can be positive"),
                      field("class_id", &PrecisionOptions::class_id, "only this class counts"));
  }
};
// Of what was predicted positive, the share that is.
class RUNNEL_API Precision : public MetricOf<Precision, PrecisionOptions> {
 public:
  static constexpr const char* kClassName = "Precision";
  explicit Precision(PrecisionOptions options = {});
  Precision(Trackable* parent, const std::string& attribute, PrecisionOptions options = {})
      : Precision(std::move(options)) {
    parent->track(attribute, *this);
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override;
  Config get_config() const override;

 private:
  ConfusionRequest request_;
  Variable true_positives_, false_positives_;
};
// Of what is positive, the share that was predicted so.
class RUNNEL_API Recall : public MetricOf<Recall, PrecisionOptions> {
 public:
  static constexpr const char* kClassName = "Recall";
  explicit Recall(PrecisionOptions options = {});
  Recall(Trackable* parent, const std::string& attribute, PrecisionOptions options = {}) : Recall(std::move(options)) {
    parent->track(attribute, *this);
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override;
  Config get_config() const override;

 private:
  ConfusionRequest request_;
  Variable true_positives_, false_negatives_;
};

}  // namespace runnel::keras::metrics
