#pragma once

#include <optional>

#include "runnel/keras/metrics_base.h"

namespace runnel::keras::metrics {

template <class O>
constexpr auto average_fields() {
  return field_list(
      field("average", &O::average,
            "\"micro\": all classes together; \"macro\": the mean over classes; \"weighted\": likewise, by "
            "how often each class appears; without it one score per class"));
}
template <class O>
constexpr auto decision_fields() {
  return field_list(
      field("threshold", &O::threshold, "above it a class is predicted; without one the largest of a row is"));
}

struct FBetaScoreOptions {
  std::optional<std::string> average = {};
  double beta = 1;
  std::optional<double> threshold = {};
  std::string name = {};
  DType dtype = DType::float32;
  static constexpr auto fields() {
    using O = FBetaScoreOptions;
    return joined_fields(average_fields<O>(),
                         field_list(field("beta", &O::beta, "recall counts beta times as much as precision")),
                         decision_fields<O>());
  }
};
// (1 + beta**2) * precision * recall / (beta**2 * precision + recall), for labels and predictions [batch, classes].
class RUNNEL_API FBetaScore : public MetricOf<FBetaScore, FBetaScoreOptions> {
 public:
  static constexpr const char* kClassName = "FBetaScore";
  static constexpr const char* kName = "fbeta_score";
  explicit FBetaScore(FBetaScoreOptions options = {});
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override;

 private:
  void build(const PartialShape& y_true, const PartialShape& y_pred);
  Variable true_positives_, false_positives_, false_negatives_, intermediate_weights_;
};

struct F1ScoreOptions {
  std::optional<std::string> average = {};
  std::optional<double> threshold = {};
  std::string name = {};
  DType dtype = DType::float32;
  static constexpr auto fields() {
    return joined_fields(average_fields<F1ScoreOptions>(), decision_fields<F1ScoreOptions>());
  }
};
class RUNNEL_API F1Score : public FBetaScore {
 public:
  using Options = F1ScoreOptions;
  explicit F1Score(const F1ScoreOptions& options = {});
  std::string class_name() const override { return "F1Score"; }
  Config get_config() const override;
  F1ScoreOptions options() const;
};

}  // namespace runnel::keras::metrics
