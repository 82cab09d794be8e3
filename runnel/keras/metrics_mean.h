#pragma once

#include "runnel/keras/losses.h"
#include "runnel/keras/metrics_base.h"

// Metrics that are the mean of a value per sample: accuracies, and the losses.
namespace runnel::keras::metrics {

// 1 or 0 for every sample (binary: the share of the last dimension that is right), float32. Objects, as the functions
// of losses:: are.
namespace functions {

struct RUNNEL_API BinaryAccuracy {
  static constexpr const char* kName = "binary_accuracy";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, double threshold = 0.5) const;
};
struct RUNNEL_API TopKCategoricalAccuracy {
  static constexpr const char* kName = "top_k_categorical_accuracy";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, int64_t k = 5) const;
};
struct RUNNEL_API SparseTopKCategoricalAccuracy {
  static constexpr const char* kName = "sparse_top_k_categorical_accuracy";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, int64_t k = 5) const;
};
// The cosine of the angle; the loss of that name is its negative.
struct RUNNEL_API CosineSimilarity {
  static constexpr const char* kName = "cosine_similarity";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, int64_t axis = -1) const;
};
RUNNEL_API Tensor accuracy(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor sparse_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred);

}  // namespace functions

// Equal or not, element by element.
inline constexpr losses::PairFunctionOf<"accuracy", functions::accuracy> accuracy;
inline constexpr functions::BinaryAccuracy binary_accuracy;
// Labels are one-hot.
inline constexpr losses::PairFunctionOf<"categorical_accuracy", functions::categorical_accuracy> categorical_accuracy;
// Labels are class numbers.
inline constexpr losses::PairFunctionOf<"sparse_categorical_accuracy", functions::sparse_categorical_accuracy>
    sparse_categorical_accuracy;
inline constexpr functions::TopKCategoricalAccuracy top_k_categorical_accuracy;
inline constexpr functions::SparseTopKCategoricalAccuracy sparse_top_k_categorical_accuracy;
inline constexpr functions::CosineSimilarity cosine_similarity;
using losses::binary_crossentropy;
using losses::categorical_crossentropy;
using losses::categorical_hinge;
using losses::hinge;
using losses::kl_divergence;
using losses::kld, losses::KLD, losses::logcosh, losses::mae, losses::MAE, losses::mape, losses::MAPE, losses::mse,
    losses::MSE, losses::msle, losses::MSLE;
using losses::log_cosh;
using losses::mean_absolute_error;
using losses::mean_absolute_percentage_error;
using losses::mean_squared_error;
using losses::mean_squared_logarithmic_error;
using losses::poisson;
using losses::sparse_categorical_crossentropy;
using losses::squared_hinge;

// The mean of a function as a class; `settings` are the members of the options that the function takes after labels and
// predictions.
template <losses::FixedText class_name, losses::FixedText name, auto function, class OptionsType = MetricOptions,
          auto... settings>
class FunctionMetricOf
    : public MeanMetricOf<FunctionMetricOf<class_name, name, function, OptionsType, settings...>, OptionsType> {
 public:
  static constexpr const char* kClassName = class_name.text;
  static constexpr const char* kName = name.text;
  using MeanMetricOf<FunctionMetricOf, OptionsType>::MeanMetricOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const {
    return function(y_true, Operand(y_pred, SourceSite{}), this->options_.*settings...);
  }
};
using Accuracy = FunctionMetricOf<"Accuracy", "accuracy", accuracy>;
using CategoricalAccuracy = FunctionMetricOf<"CategoricalAccuracy", "categorical_accuracy", categorical_accuracy>;
using SparseCategoricalAccuracy =
    FunctionMetricOf<"SparseCategoricalAccuracy", "sparse_categorical_accuracy", sparse_categorical_accuracy>;
using MeanSquaredError = FunctionMetricOf<"MeanSquaredError", "mean_squared_error", mean_squared_error>;
using MeanAbsoluteError = FunctionMetricOf<"MeanAbsoluteError", "mean_absolute_error", mean_absolute_error>;
using MeanAbsolutePercentageError =
    FunctionMetricOf<"MeanAbsolutePercentageError", "mean_absolute_percentage_error", mean_absolute_percentage_error>;
using MeanSquaredLogarithmicError =
    FunctionMetricOf<"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", mean_squared_logarithmic_error>;
using KLDivergence = FunctionMetricOf<"KLDivergence", "kullback_leibler_divergence", kl_divergence>;
using Poisson = FunctionMetricOf<"Poisson", "poisson", poisson>;
using LogCoshError = FunctionMetricOf<"LogCoshError", "logcosh", log_cosh>;
using Hinge = FunctionMetricOf<"Hinge", "hinge", hinge>;
using SquaredHinge = FunctionMetricOf<"SquaredHinge", "squared_hinge", squared_hinge>;
using CategoricalHinge = FunctionMetricOf<"CategoricalHinge", "categorical_hinge", categorical_hinge>;

struct TopKOptions {
  int64_t k = 5;
  std::string name = {};
  DType dtype = DType::float32;
  static constexpr auto fields() { return field_list(field("k", &TopKOptions::k, "how many of the best count")); }
};
using TopKCategoricalAccuracy = FunctionMetricOf<"TopKCategoricalAccuracy", "top_k_categorical_accuracy",
                                                 top_k_categorical_accuracy, TopKOptions, &TopKOptions::k>;
using SparseTopKCategoricalAccuracy =
    FunctionMetricOf<"SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy",
                     sparse_top_k_categorical_accuracy, TopKOptions, &TopKOptions::k>;

struct CosineSimilarityOptions {
  std::string name = {};
  DType dtype = DType::float32;
  int64_t axis = -1;
  static constexpr auto fields() {
    return field_list(field("axis", &CosineSimilarityOptions::axis, "that of the elements of a vector"));
  }
};
using CosineSimilarity = FunctionMetricOf<"CosineSimilarity", "cosine_similarity", cosine_similarity,
                                          CosineSimilarityOptions, &CosineSimilarityOptions::axis>;

struct CrossentropyOptions {
  std::string name = {};
  DType dtype = DType::float32;
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
  static constexpr auto fields() { return losses::crossentropy_fields<CrossentropyOptions>(); }
};
using BinaryCrossentropy = FunctionMetricOf<"BinaryCrossentropy", "binary_crossentropy", binary_crossentropy,
                                            CrossentropyOptions, &CrossentropyOptions::from_logits,
                                            &CrossentropyOptions::label_smoothing, &CrossentropyOptions::axis>;
using CategoricalCrossentropy =
    FunctionMetricOf<"CategoricalCrossentropy", "categorical_crossentropy", categorical_crossentropy,
                     CrossentropyOptions, &CrossentropyOptions::from_logits, &CrossentropyOptions::label_smoothing,
                     &CrossentropyOptions::axis>;

struct SparseCategoricalCrossentropyOptions {
  std::string name = {};
  DType dtype = DType::float32;
  bool from_logits = false;
  int64_t axis = -1;
  static constexpr auto fields() {
    using O = SparseCategoricalCrossentropyOptions;
    return joined_fields(losses::from_logits_fields<O>(), field_list(field("axis", &O::axis, "that of the classes")));
  }
};
using SparseCategoricalCrossentropy =
    FunctionMetricOf<"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy",
                     sparse_categorical_crossentropy, SparseCategoricalCrossentropyOptions,
                     &SparseCategoricalCrossentropyOptions::from_logits, &SparseCategoricalCrossentropyOptions::axis>;

struct BinaryAccuracyOptions {
  std::string name = {};
  DType dtype = DType::float32;
  double threshold = 0.5;
  static constexpr auto fields() {
    return field_list(field("threshold", &BinaryAccuracyOptions::threshold, "predictions above it are 1"));
  }
};
// The mean over all elements, each with its weight; the function gives one value per sample.
class RUNNEL_API BinaryAccuracy : public MeanMetricOf<BinaryAccuracy, BinaryAccuracyOptions> {
 public:
  static constexpr const char* kClassName = "BinaryAccuracy";
  static constexpr const char* kName = "binary_accuracy";
  using MeanMetricOf::MeanMetricOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const;
};

// The root of the mean of all squared differences.
class RUNNEL_API RootMeanSquaredError : public MetricOf<RootMeanSquaredError, MetricOptions> {
 public:
  static constexpr const char* kClassName = "RootMeanSquaredError";
  static constexpr const char* kName = "root_mean_squared_error";
  using MetricOf::MetricOf;
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override;

 private:
  WeightedMean mean_{add_weight("total"), add_weight("count")};
};

}  // namespace runnel::keras::metrics
