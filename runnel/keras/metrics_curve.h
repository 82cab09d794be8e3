#pragma once

#include "runnel/keras/metrics_confusion.h"

// Metrics of how counts change with the threshold.
namespace runnel::keras::metrics {

// The four counts at many thresholds: variables true_positives, true_negatives, false_positives, false_negatives, of
// shape [thresholds], or [thresholds, labels] where the positions of the last dimension are counted apart.
class RUNNEL_API CurveMetric : public Metric {
 public:
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;

 protected:
  CurveMetric(std::string name, DType dtype, ConfusionRequest request, int64_t labels = 0);
  Tensor recalls() const;  // also called sensitivity, true positive rate
  Tensor precisions() const;
  Tensor specificities() const;  // 1 - the false positive rate

  ConfusionRequest request_;
  int64_t labels_;  // 0: all counted together
  Variable true_positives_, true_negatives_, false_positives_, false_negatives_;
};

struct AUCOptions {
  int64_t num_thresholds = 200;
  std::string curve = "ROC";
  std::string summation_method = "interpolation";
  std::string name = {};
  DType dtype = DType::float32;
  std::vector<double> thresholds = {};
  bool multi_label = false;
  std::optional<int64_t> num_labels = {};
  std::vector<double> label_weights = {};
  bool from_logits = false;
  static constexpr auto fields() {
    using O = AUCOptions;
    return field_list(
        field("num_thresholds", &O::num_thresholds, "how many thresholds there are"),
        field("curve", &O::curve, "\"ROC\", or \"PR\": precision by recall"),
        field("summation_method", &O::summation_method, "or \"minoring\", \"majoring\""),
        field("thresholds", &O::thresholds, "between 0 and 1, instead of num_thresholds of equal distance"),
        field("multi_label", &O::multi_label,
              "the mean of the areas of the num_labels columns, not that of all together"),
        field("num_labels", &O::num_labels, "of multi_label"),
        field("label_weights", &O::label_weights,
              "of the columns: of their areas in the mean, or of their predictions"),
        field("from_logits", &O::from_logits, "predictions are logits, not probabilities"));
  }
};
// The area under a curve, by a Riemann sum over the thresholds.
class RUNNEL_API AUC : public CurveMetric {
 public:
  using Options = AUCOptions;
  explicit AUC(AUCOptions options = {});
  AUC(Trackable* parent, const std::string& attribute, AUCOptions options = {}) : AUC(std::move(options)) {
    parent->track(attribute, *this);
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override;
  std::string class_name() const override { return "AUC"; }
  Config get_config() const override;
  const AUCOptions& options() const { return options_; }

 private:
  Tensor areas() const;  // [], or [labels]
  Tensor interpolated_pr_areas() const;
  AUCOptions options_;
};

struct CurvePointOptions {
  double value = 0.5;
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = {};
  std::string name = {};
  DType dtype = DType::float32;
  // Without `value`, whose entry has the name of what must be reached: sensitivity, specificity, recall or precision.
  static constexpr auto fields() {
    using O = CurvePointOptions;
    return field_list(field("num_thresholds", &O::num_thresholds, "how many thresholds there are"),
                      field("class_id", &O::class_id, "only this class counts"));
  }
};
enum class CurvePointKind {
  sensitivity_at_specificity,
  specificity_at_sensitivity,
  precision_at_recall,
  recall_at_precision
};

// The best of one quantity among the thresholds at which another reaches a value; 0 where none does.
class RUNNEL_API CurvePoint : public CurveMetric {
 public:
  CurvePoint(CurvePointKind kind, const CurvePointOptions& options);
  Tensor result() const override;
  std::string class_name() const override;
  Config get_config() const override;
  const CurvePointOptions& options() const { return options_; }

 private:
  CurvePointKind kind_;
  CurvePointOptions options_;
};
template <CurvePointKind kind>
class CurvePointOf : public CurvePoint {
 public:
  using Options = CurvePointOptions;
  explicit CurvePointOf(const CurvePointOptions& options) : CurvePoint(kind, options) {}
  explicit CurvePointOf(double value) : CurvePoint(kind, {.value = value}) {}
};
using SensitivityAtSpecificity = CurvePointOf<CurvePointKind::sensitivity_at_specificity>;
using SpecificityAtSensitivity = CurvePointOf<CurvePointKind::specificity_at_sensitivity>;
using PrecisionAtRecall = CurvePointOf<CurvePointKind::precision_at_recall>;
using RecallAtPrecision = CurvePointOf<CurvePointKind::recall_at_precision>;

}  // namespace runnel::keras::metrics
