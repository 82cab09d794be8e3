// Losses between distributions.
#include "runnel/base/format.h"
#include "runnel/keras/losses.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/probability_loss.h"

namespace runnel::keras::losses {
namespace {

Tensor clipped(const Tensor& probabilities) { return clip_by_value(probabilities, kEpsilon, 1 - kEpsilon); }

Tensor classes_last(const Tensor& t, int axis) {
  const int rank = t.partial_shape().rank();
  if (axis == -1 || rank < 0 || normalize_axis(axis, rank) == rank - 1) return t;
  std::vector<int64_t> order;
  for (int i = 0; i < rank; ++i) {
    if (i != normalize_axis(axis, rank)) order.push_back(i);
  }
  order.push_back(normalize_axis(axis, rank));
  return transpose(t, order);
}

// The labels with a share of them given to all classes alike. Their number may be unknown before the graph runs.
Tensor smoothed(const Tensor& labels, double smoothing) {
  const PartialShape s = labels.partial_shape();
  if (s.rank() > 0 && s[s.rank() - 1] > 0) {
    return labels * (1 - smoothing) + smoothing / static_cast<double>(s[s.rank() - 1]);
  }
  const Tensor classes = cast(shape(labels)[-1], labels.dtype());
  return labels * (1 - smoothing) + smoothing / classes;
}

Tensor sparse_crossentropy_of(const Tensor& y_true, const Tensor& y_pred, bool from_logits, int axis) {
  const Tensor rows = classes_last(y_pred, axis);
  const Tensor labels = class_labels("sparse_categorical_crossentropy", y_true, rows);
  if (from_logits) return nn::sparse_softmax_cross_entropy_with_logits(labels, rows);
  if (rows.partial_shape().rank() == 2) return nn::sparse_cross_entropy_of_probabilities(labels, rows, kEpsilon);
  const Tensor matrix = reshape(rows, stack({Tensor(-1), shape(rows)[-1]}));
  return reshape(nn::sparse_cross_entropy_of_probabilities(reshape(labels, {-1}), matrix, kEpsilon), shape(labels));
}

Tensor crossentropy_of(const Tensor& y_true, const Tensor& y_pred, bool from_logits, double label_smoothing, int axis) {
  if (!y_true.partial_shape().compatible_with(y_pred.partial_shape())) {
    throw invalid_argument(
        "[categorical_crossentropy] y_true of shape {} does not fit y_pred of shape {}; for labels that are class "
        "numbers use sparse_categorical_crossentropy",
        y_true.partial_shape().str(), y_pred.partial_shape().str());
  }
  Tensor labels = to_dtype(y_true, y_pred.dtype());
  if (label_smoothing != 0) labels = smoothed(labels, label_smoothing);
  if (from_logits) return nn::softmax_cross_entropy_with_logits(labels, y_pred, axis);
  const Tensor probabilities = y_pred / reduce_sum(y_pred, axis, true);
  return -reduce_sum(labels * log(clipped(probabilities)), axis);
}

Tensor binary_crossentropy_of(const Tensor& y_true, const Tensor& y_pred, bool from_logits, double label_smoothing,
                              int axis) {
  // Of another shape they would broadcast, and the loss would be one of pairs that do not belong together.
  if (!y_true.partial_shape().compatible_with(y_pred.partial_shape())) {
    throw invalid_argument(
        "[binary_crossentropy] logits and labels must have the same shape, received y_pred of shape {} and y_true of "
        "shape {}",
        y_pred.partial_shape().str(), y_true.partial_shape().str());
  }
  Tensor labels = to_dtype(y_true, y_pred.dtype());
  if (label_smoothing != 0) labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing;
  if (from_logits) return reduce_mean(nn::sigmoid_cross_entropy_with_logits(labels, y_pred), axis);
  const Tensor p = clipped(y_pred);
  return -reduce_mean(labels * log(p + kEpsilon) + (1 - labels) * log(1 - p + kEpsilon), axis);
}

}  // namespace

namespace functions {

Tensor SparseCategoricalCrossentropy::operator()(const Tensor& y_true, const Operand& y_pred, bool from_logits,
                                                 int64_t axis) const {
  return called_at(y_pred.where(),
                   [&] { return sparse_crossentropy_of(y_true, y_pred.value(), from_logits, static_cast<int>(axis)); });
}

Tensor CategoricalCrossentropy::operator()(const Tensor& y_true, const Operand& y_pred, bool from_logits,
                                           double label_smoothing, int64_t axis) const {
  return called_at(y_pred.where(), [&] {
    return crossentropy_of(y_true, y_pred.value(), from_logits, label_smoothing, static_cast<int>(axis));
  });
}

Tensor BinaryCrossentropy::operator()(const Tensor& y_true, const Operand& y_pred, bool from_logits,
                                      double label_smoothing, int64_t axis) const {
  return called_at(y_pred.where(), [&] {
    return binary_crossentropy_of(y_true, y_pred.value(), from_logits, label_smoothing, static_cast<int>(axis));
  });
}

Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor truth = clip_by_value(labels_for("kl_divergence", y_true, y_pred), kEpsilon, 1);
  const Tensor guess = clip_by_value(y_pred, kEpsilon, 1);
  return reduce_sum(truth * log(truth / guess), -1);
}

Tensor poisson(const Tensor& y_true, const Tensor& y_pred) {
  return reduce_mean(y_pred - labels_for("poisson", y_true, y_pred) * log(y_pred + kEpsilon), -1);
}

}  // namespace functions
}  // namespace runnel::keras::losses
