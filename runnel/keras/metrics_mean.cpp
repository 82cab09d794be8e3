#include "runnel/keras/metrics_mean.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras::metrics {
namespace {

Tensor as_share(const Tensor& matches) { return cast(matches, DType::float32); }

Tensor binary_matches(const char* who, const Tensor& y_true, const Tensor& y_pred, double threshold) {
  const Tensor truth = losses::labels_for(who, y_true, y_pred);
  return as_share(equal(truth, cast(y_pred > threshold, y_pred.dtype())));
}

Tensor most_likely(const char* who, const Tensor& y_true, const Tensor& y_pred) {
  if (!y_true.partial_shape().compatible_with(y_pred.partial_shape())) {
    throw invalid_argument(
        "[{}] y_true of shape {} does not fit y_pred of shape {}; for labels that are class numbers "
        "use the sparse form",
        who, y_true.partial_shape().str(), y_pred.partial_shape().str());
  }
  return argmax(y_true, -1);
}

// Is the label of each row among its k best? For labels and predictions of any rank.
Tensor top_k_matches(const Tensor& labels, const Tensor& y_pred, int64_t k) {
  const PartialShape s = y_pred.partial_shape();
  const Tensor scores = losses::to_dtype(y_pred, DType::float32);
  if (s.rank() == 2) return as_share(nn::in_top_k(labels, scores, k));
  const Tensor classes = shape(scores)[-1];
  const Tensor rows = reshape(scores, stack({Tensor(-1), classes}));
  return reshape(as_share(nn::in_top_k(reshape(labels, {-1}), rows, k)), shape(labels));
}

}  // namespace

namespace functions {

Tensor accuracy(const Tensor& y_true, const Tensor& y_pred) {
  return as_share(equal(y_true, losses::to_dtype(y_pred, y_true.dtype())));
}

Tensor BinaryAccuracy::operator()(const Tensor& y_true, const Operand& y_pred, double threshold) const {
  return losses::called_at(y_pred.where(),
                           [&] { return reduce_mean(binary_matches(kName, y_true, y_pred.value(), threshold), -1); });
}

Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  return as_share(equal(most_likely("categorical_accuracy", y_true, y_pred), argmax(y_pred, -1)));
}

Tensor sparse_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor labels = losses::class_labels("sparse_categorical_accuracy", y_true, y_pred);
  return as_share(equal(labels, argmax(y_pred, -1, labels.dtype())));
}

Tensor TopKCategoricalAccuracy::operator()(const Tensor& y_true, const Operand& y_pred, int64_t k) const {
  return losses::called_at(y_pred.where(), [&] {
    const Tensor scores = y_pred.value();
    return top_k_matches(most_likely(kName, y_true, scores), scores, k);
  });
}

Tensor SparseTopKCategoricalAccuracy::operator()(const Tensor& y_true, const Operand& y_pred, int64_t k) const {
  return losses::called_at(y_pred.where(), [&] {
    const Tensor scores = y_pred.value();
    return top_k_matches(losses::class_labels(kName, y_true, scores), scores, k);
  });
}

Tensor CosineSimilarity::operator()(const Tensor& y_true, const Operand& y_pred, int64_t axis) const {
  return -losses::cosine_similarity(y_true, y_pred, axis);
}

}  // namespace functions

Tensor BinaryAccuracy::values(const Tensor& y_true, const Tensor& y_pred) const {
  return binary_matches(name().c_str(), y_true, y_pred, options_.threshold);
}

void RootMeanSquaredError::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const losses::Matched matched = losses::match_ranks(y_true, predictions(y_pred));
  const Tensor truth = losses::labels_for(name().c_str(), matched.y_true, matched.y_pred);
  mean_.add(name(), squared_difference(matched.y_pred, truth), sample_weight);
}
Tensor RootMeanSquaredError::result() const { return sqrt(mean_.result()); }

}  // namespace runnel::keras::metrics
