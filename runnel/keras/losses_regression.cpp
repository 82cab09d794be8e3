// Losses of differences, angles and margins.
#include <cmath>

#include "runnel/keras/losses.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/norm.h"

namespace runnel::keras::losses {
namespace {

// Labels -1 and 1 for those that are all 0 or 1; others stay.
Tensor signed_labels(const char* who, const Tensor& y_true, const Tensor& y_pred) {
  const Tensor labels = labels_for(who, y_true, y_pred);
  const Tensor binary = reduce_all(logical_or(equal(labels, 0), equal(labels, 1)));
  return where(binary, 2 * labels - 1, labels);
}

Tensor margin(const char* who, const Tensor& y_true, const Tensor& y_pred) {
  return maximum(1 - signed_labels(who, y_true, y_pred) * y_pred, 0);
}

Tensor log_plus_one(const Tensor& t) { return log(maximum(t, kEpsilon) + 1); }

Tensor huber_of(const Tensor& y_true, const Tensor& y_pred, double delta) {
  const Tensor error = y_pred - labels_for("huber", y_true, y_pred);
  const Tensor size = abs(error);
  return reduce_mean(where(size <= delta, 0.5 * square(error), delta * size - 0.5 * delta * delta), -1);
}

Tensor negative_cosine(const Tensor& y_true, const Tensor& y_pred, int axis) {
  const Tensor truth = labels_for("cosine_similarity", y_true, y_pred);
  return -reduce_sum(nn::l2_normalize(truth, axis) * nn::l2_normalize(y_pred, axis), axis);
}

}  // namespace

namespace functions {

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred) {
  return reduce_mean(squared_difference(y_pred, labels_for("mean_squared_error", y_true, y_pred)), -1);
}

Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred) {
  return reduce_mean(abs(y_pred - labels_for("mean_absolute_error", y_true, y_pred)), -1);
}

Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor truth = labels_for("mean_absolute_percentage_error", y_true, y_pred);
  return 100 * reduce_mean(abs((truth - y_pred) / maximum(abs(truth), kEpsilon)), -1);
}

Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor truth = labels_for("mean_squared_logarithmic_error", y_true, y_pred);
  return reduce_mean(squared_difference(log_plus_one(y_pred), log_plus_one(truth)), -1);
}

Tensor Huber::operator()(const Tensor& y_true, const Operand& y_pred, double delta) const {
  return called_at(y_pred.where(), [&] { return huber_of(y_true, y_pred.value(), delta); });
}

Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor error = y_pred - labels_for("log_cosh", y_true, y_pred);
  return reduce_mean(error + nn::softplus(-2 * error) - std::log(2.0), -1);
}

Tensor CosineSimilarity::operator()(const Tensor& y_true, const Operand& y_pred, int64_t axis) const {
  return called_at(y_pred.where(), [&] { return negative_cosine(y_true, y_pred.value(), static_cast<int>(axis)); });
}

Tensor hinge(const Tensor& y_true, const Tensor& y_pred) { return reduce_mean(margin("hinge", y_true, y_pred), -1); }

Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred) {
  return reduce_mean(square(margin("squared_hinge", y_true, y_pred)), -1);
}

Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor labels = labels_for("categorical_hinge", y_true, y_pred);
  const Tensor right = reduce_sum(labels * y_pred, -1);
  const Tensor wrong = reduce_max((1 - labels) * y_pred, -1);
  return maximum(wrong - right + 1, 0);
}

}  // namespace functions

Tensor Huber::values(const Tensor& y_true, const Tensor& y_pred) const {
  return huber_of(y_true, y_pred, options_.delta);
}

}  // namespace runnel::keras::losses
