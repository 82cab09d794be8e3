#pragma once

#include <optional>
#include <string>

#include "runnel/keras/metrics_base.h"

namespace runnel::keras::metrics {

struct MeanTensorOptions {
  std::string name = {};
  DType dtype = DType::float32;
  std::optional<Shape> shape = {};  // that of the first values when not given
};

// The mean of tensors of one shape, element by element; `sample_weight` weights them. Its variables are made with the
// first values.
class RUNNEL_API MeanTensor : public Metric {
 public:
  explicit MeanTensor(const MeanTensorOptions& options = {});
  MeanTensor(Trackable* parent, const std::string& attribute, const MeanTensorOptions& options = {});
  void update_state(const Tensor& given, const Tensor& sample_weight = {}, const Tensor& = {}) override;
  Tensor result() const override;  // an Error before the first values
  std::string class_name() const override { return "MeanTensor"; }

 private:
  void build(const Shape& shape);
};

}  // namespace runnel::keras::metrics
