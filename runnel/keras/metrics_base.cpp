#include "runnel/keras/metrics_base.h"

#include <utility>

#include "runnel/base/format.h"
#include "runnel/keras/layer.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras::metrics {
namespace {

// Values times their weights, and the weights as broadcast; where weights have fewer dimensions than values, and do not
// broadcast, the values are first reduced over the others.
struct Weighted {
  Tensor values;
  Tensor weight;  // undefined where there are none
};

bool broadcasts_to(const PartialShape& weight, const PartialShape& values) {
  if (weight.rank() == 0) return true;
  if (weight.rank() != values.rank()) return false;
  for (int i = 0; i < weight.rank(); ++i) {
    if (weight[i] != 1 && weight[i] != values[i] && weight[i] >= 0 && values[i] >= 0) return false;
  }
  return true;
}

Weighted apply_weight(const std::string& who, Tensor values, const Tensor& sample_weight, bool sum) {
  if (!sample_weight.defined()) return {values, {}};
  const int rank = sample_weight.partial_shape().rank();
  const int values_rank = values.partial_shape().rank();
  if (rank > 0 && values_rank > rank + 1) {
    std::vector<int64_t> inner;
    for (int i = rank; i < values_rank; ++i) inner.push_back(i);
    values = sum ? reduce_sum(values, inner) : reduce_mean(values, inner);
  }
  Tensor weight = losses::match_weight(who, sample_weight, values);
  if (!broadcasts_to(weight.partial_shape(), values.partial_shape())) {
    throw invalid_argument("[{}] sample_weight of shape {} does not fit values of shape {}", who,
                           sample_weight.partial_shape().str(), values.partial_shape().str());
  }
  const bool same = weight.partial_shape() == values.partial_shape() && values.partial_shape().is_static();
  if (!same && values_rank != 0) weight = broadcast_to(weight, shape(values));
  return {values * weight, weight};
}

Tensor sum_of(const Tensor& t) { return t.partial_shape().rank() == 0 ? t : reduce_sum(t); }

}  // namespace

// What is shared is the variables and whatever else lives as long as someone holds it, under the same names. Parts that
// are members of the other one stay its own.
// NOLINTNEXTLINE(bugprone-copy-constructor-init)
Metric::Metric(const Metric& other)
    : Trackable(),
      name_((other.refuse_moved_from(), other.name())),
      dtype_(other.dtype_),
      variables_(other.variables_) {
  for (const Edge& edge : other.edges()) {
    if (edge.handle.defined()) {
      track_handle(edge.name, edge.handle);
    } else if (edge.owner) {
      track(edge.name, edge.owner);
    }
  }
}

Metric::Metric(Metric&& other) noexcept
    : Trackable(std::move(other)),
      name_(std::move(other.name_)),
      dtype_(other.dtype_),
      variables_(std::move(other.variables_)),
      moved_from_(std::exchange(other.moved_from_, true)) {}

void Metric::refuse_moved_from() const {
  if (!moved_from_) return;
  throw make_error(
      Code::failed_precondition,
      "[{}] this Metric was moved from: what it was is now the object that it was moved into. Use that one",
      class_name());
}

const std::string& Metric::name() const {
  if (name_.empty()) name_ = unique_name(to_snake_case(class_name()));
  return name_;
}

void Metric::register_with(Trackable* parent, const std::string& attribute) {
  if (!parent) {
    throw invalid_argument(
        "[Metric] the metric '{0}' is a member of nothing: {{nullptr, \"{0}\"}}. Write {{this, \"{0}\"}}", attribute);
  }
  parent->track(attribute, *this);
}

Variable Metric::add_weight(const std::string& name, const Shape& shape) {
  Variable variable(Tensor(zeros(shape, dtype_)), {.name = name, .trainable = false});
  track(name, variable);
  variables_.push_back(variable);
  return variable;
}

void Metric::reset_state() {
  refuse_moved_from();
  for (const Variable& variable : variables_) variable.assign(zeros(variable.shape(), variable.dtype()));
}

Tensor Metric::operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, SourceSite where) {
  return composed(where, [&] {
    refuse_moved_from();
    update_state(y_true, y_pred, sample_weight);
    return result();
  });
}

std::string Metric::class_name() const { return class_name_of(typeid(*this)); }

Config Metric::get_config() const { return Config::Map{{"name", name()}, {"dtype", dtype_name(dtype_)}}; }

Tensor Metric::predictions(const Tensor& y_pred) const {
  if (!y_pred.defined()) throw invalid_argument("[{}] update_state needs y_true and y_pred", name());
  return is_float(y_pred.dtype()) ? losses::to_dtype(y_pred, dtype_) : y_pred;
}

void WeightedMean::add(const std::string& who, const Tensor& values, const Tensor& sample_weight) const {
  const DType dtype = total.dtype();
  const Weighted weighted = apply_weight(who, losses::to_dtype(values, dtype), sample_weight, false);
  total.assign_add(sum_of(weighted.values));
  const PartialShape s = weighted.values.partial_shape();
  if (weighted.weight.defined()) {
    count.assign_add(sum_of(weighted.weight));
  } else if (s.is_static()) {
    count.assign_add(static_cast<double>(Shape(s).num_elements()));
  } else {
    count.assign_add(cast(size(weighted.values), dtype));
  }
}

Tensor WeightedMean::result() const { return divide_no_nan(total, count); }

void Mean::update_state(const Tensor& values, const Tensor& sample_weight, const Tensor&) {
  mean_.add(name(), values, sample_weight);
}

void Sum::update_state(const Tensor& values, const Tensor& sample_weight, const Tensor&) {
  total_.assign_add(sum_of(apply_weight(name(), losses::to_dtype(values, dtype()), sample_weight, true).values));
}

MeanMetricWrapper::MeanMetricWrapper(MetricFunction function, std::string name, DType dtype)
    : Metric(std::move(name), dtype), function_(std::move(function)) {
  track_empty("_fn_kwargs");
}

void MeanMetricWrapper::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  const losses::Matched matched = losses::match_ranks(y_true, predictions(y_pred));
  mean_.add(name(), function_(matched.y_true, matched.y_pred), sample_weight);
}

}  // namespace runnel::keras::metrics
