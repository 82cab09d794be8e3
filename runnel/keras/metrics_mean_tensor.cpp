#include "runnel/keras/metrics_mean_tensor.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"

namespace runnel::keras::metrics {

MeanTensor::MeanTensor(const MeanTensorOptions& options)
    : Metric(options.name.empty() ? "mean_tensor" : options.name, options.dtype) {
  if (options.shape) build(*options.shape);
}

MeanTensor::MeanTensor(Trackable* parent, const std::string& attribute, const MeanTensorOptions& options)
    : MeanTensor(options) {
  register_with(parent, attribute);
}

// Each variable has two names in Keras's object graph.
void MeanTensor::build(const Shape& shape) {
  for (const char* weight : {"total", "count"}) track(std::string("_") + weight, add_weight(weight, shape));
}

void MeanTensor::update_state(const Tensor& given, const Tensor& sample_weight, const Tensor&) {
  refuse_moved_from();
  Tensor values = losses::to_dtype(given, dtype());
  const PartialShape shape = values.partial_shape();
  if (variables().empty()) {
    if (!shape.is_static()) {
      throw invalid_argument("[{}] the first values have the shape {}: give the metric its shape", name(), shape.str());
    }
    build(Shape(shape));
  }
  const Variable &total = variables()[0], &count = variables()[1];
  if (!shape.compatible_with(total.shape())) {
    throw invalid_argument("[{}] takes values of one shape, {}; got {}", name(), total.shape().str(), shape.str());
  }
  Tensor counts = ones_like(values);
  if (sample_weight.defined()) {
    const Tensor weight = losses::match_weight(name(), sample_weight, values);
    counts = counts * weight;
    values = values * weight;
  }
  total.assign_add(values);
  count.assign_add(counts);
}

Tensor MeanTensor::result() const {
  if (variables().empty()) {
    throw make_error(Code::failed_precondition, "[{}] there are no values yet: call update_state first", name());
  }
  return divide_no_nan(variables()[0], variables()[1]);
}

}  // namespace runnel::keras::metrics
