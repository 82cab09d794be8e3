#pragma once

#include <vector>

#include "runnel/keras/metrics_base.h"

// Intersection over union: of the pixels that are of a class or were predicted to be, the share that both holds for.
namespace runnel::keras::metrics {

struct IoUOptions {
  int64_t num_classes = 0;
  std::vector<int64_t> target_class_ids = {};
  std::string name = {};
  DType dtype = DType::float32;
  bool sparse_y_true = true;
  bool sparse_y_pred = true;
  int64_t axis = -1;
  static constexpr auto fields() {
    using O = IoUOptions;
    return field_list(
        field("num_classes", &O::num_classes, "how many classes there are"),
        field("target_class_ids", &O::target_class_ids, "whose values are averaged; all of MeanIoU"),
        field("sparse_y_true", &O::sparse_y_true, "class numbers; otherwise the largest along `axis` counts"),
        field("sparse_y_pred", &O::sparse_y_pred, "predictions are class numbers"),
        field("axis", &O::axis, "that of the classes where they are not numbers"));
  }
};
class RUNNEL_API IoU : public Metric {
 public:
  using Options = IoUOptions;
  explicit IoU(IoUOptions options);
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override;
  std::string class_name() const override { return "IoU"; }
  Config get_config() const override;
  const IoUOptions& options() const { return options_; }

 protected:
  IoUOptions options_;

 private:
  Variable total_cm_;  // [classes, classes]: row the class, column the prediction
};

class RUNNEL_API MeanIoU : public IoU {
 public:
  explicit MeanIoU(IoUOptions options);
  explicit MeanIoU(int64_t num_classes) : MeanIoU(IoUOptions{.num_classes = num_classes}) {}
  std::string class_name() const override { return "MeanIoU"; }
};
// Labels are one-hot along `axis`, predictions scores.
class RUNNEL_API OneHotIoU : public IoU {
 public:
  explicit OneHotIoU(IoUOptions options);
  std::string class_name() const override { return "OneHotIoU"; }
};
class RUNNEL_API OneHotMeanIoU : public MeanIoU {
 public:
  explicit OneHotMeanIoU(IoUOptions options);
  explicit OneHotMeanIoU(int64_t num_classes) : OneHotMeanIoU(IoUOptions{.num_classes = num_classes}) {}
  std::string class_name() const override { return "OneHotMeanIoU"; }
};

struct BinaryIoUOptions {
  std::vector<int64_t> target_class_ids = {0, 1};
  double threshold = 0.5;
  std::string name = {};
  DType dtype = DType::float32;
  static constexpr auto fields() {
    return field_list(field("target_class_ids", &BinaryIoUOptions::target_class_ids, "whose values are averaged"),
                      field("threshold", &BinaryIoUOptions::threshold, "predictions from it on are class 1"));
  }
};
class RUNNEL_API BinaryIoU : public IoU {
 public:
  using Options = BinaryIoUOptions;
  explicit BinaryIoU(const BinaryIoUOptions& options = {});
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  std::string class_name() const override { return "BinaryIoU"; }
  Config get_config() const override;
  const BinaryIoUOptions& options() const { return binary_; }

 private:
  BinaryIoUOptions binary_;
};

}  // namespace runnel::keras::metrics
