#include "runnel/keras/metrics_iou.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/control.h"
#include "runnel/ops/math.h"

namespace runnel::keras::metrics {
namespace {

IoUOptions with_all_classes(IoUOptions options) {
  options.target_class_ids.clear();
  for (int64_t i = 0; i < options.num_classes; ++i) options.target_class_ids.push_back(i);
  return options;
}

IoUOptions with_scores(IoUOptions options) {
  options.sparse_y_true = false;
  options.sparse_y_pred = false;
  return options;
}

Tensor class_numbers(const Tensor& t, bool sparse, int64_t axis) {
  const Tensor numbers = sparse ? losses::to_dtype(t, DType::int64) : argmax(t, axis);
  return reshape(numbers, {-1});
}

}  // namespace

IoU::IoU(IoUOptions options) : Metric(options.name, options.dtype), options_(std::move(options)) {
  if (options_.num_classes <= 0) {
    throw invalid_argument("[IoU] num_classes must be positive, got {}", options_.num_classes);
  }
  for (const int64_t id : options_.target_class_ids) {
    if (id < 0 || id >= options_.num_classes) {
      throw invalid_argument("[IoU] target class {} is not below num_classes {}", id, options_.num_classes);
    }
  }
  total_cm_ = add_weight("total_confusion_matrix", {options_.num_classes, options_.num_classes});
  track("total_cm", total_cm_);
  track_empty("target_class_ids");
}

void IoU::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const int64_t n = options_.num_classes;
  const Tensor truth = class_numbers(y_true, options_.sparse_y_true, options_.axis);
  const Tensor guess = class_numbers(predictions(y_pred), options_.sparse_y_pred, options_.axis);
  if (truth.is_symbolic() || guess.is_symbolic()) {  // confusion_matrix sees the values otherwise
    const Tensor inside = logical_and(logical_and(truth >= 0, truth < n), logical_and(guess >= 0, guess < n));
    assert_(reduce_all(inside), {Tensor("[" + name() + "] a class is not below num_classes"), truth, guess});
  }
  const Tensor weight = sample_weight.defined() ? reshape(sample_weight, {-1}) : Tensor();
  total_cm_.assign_add(ensure_shape(math::confusion_matrix(truth, guess, n, weight, dtype()), {n, n}));
}

Tensor IoU::result() const {
  const Tensor matrix = total_cm_;
  const Tensor both = matrix_diag_part(matrix);
  const Tensor either = reduce_sum(matrix, 0) + reduce_sum(matrix, 1) - both;
  const Tensor ids = Tensor::of<int64_t>(options_.target_class_ids);
  const Tensor appearing = gather(either, ids);
  const Tensor count = reduce_sum(cast(not_equal(appearing, 0), dtype()));
  return divide_no_nan(reduce_sum(divide_no_nan(gather(both, ids), appearing)), count);
}

Config IoU::get_config() const { return with_options(Metric::get_config(), options_); }

MeanIoU::MeanIoU(IoUOptions options) : IoU(with_all_classes(std::move(options))) {}
OneHotIoU::OneHotIoU(IoUOptions options) : IoU(with_scores(std::move(options))) {}
OneHotMeanIoU::OneHotMeanIoU(IoUOptions options) : MeanIoU(with_scores(std::move(options))) {}

BinaryIoU::BinaryIoU(const BinaryIoUOptions& options)
    : IoU({.num_classes = 2,
           .target_class_ids = options.target_class_ids,
           .name = options.name,
           .dtype = options.dtype}),
      binary_(options) {}

void BinaryIoU::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  IoU::update_state(y_true, cast(predictions(y_pred) >= binary_.threshold, DType::int64), sample_weight);
}

Config BinaryIoU::get_config() const {
  return with_options(Metric::get_config(), binary_);  // NOLINT(bugprone-parent-virtual-call): not IoU's options
}

}  // namespace runnel::keras::metrics
