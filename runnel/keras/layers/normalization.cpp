#include "runnel/keras/layers/normalization.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/norm.h"

namespace runnel::keras {
namespace {

// The named dimensions of a shape, counted from the front, in order; an Error unless there are some, each named once.
std::vector<int> normalized_axes(const std::vector<int64_t>& axis, const PartialShape& input, const char* layer) {
  if (!input.has_rank()) throw invalid_argument("[{}] the rank of the input is not known", layer);
  std::vector<int> axes;
  for (const int64_t a : axis) axes.push_back(normalize_axis(a, input.rank(), layer));
  std::sort(axes.begin(), axes.end());
  if (axes.empty() || std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    throw invalid_argument("[{}] axis must name dimensions of {}, each once, got [{}]", layer, input.str(),
                           comma_separated(axis));
  }
  return axes;
}

DType at_least_float32(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

// The mean and variance of what the mask, [batch, time], lets count.
nn::Moments masked_moments(const Tensor& x, const std::vector<int64_t>& axes, const Tensor& mask) {
  const Tensor weights = expand_dims(cast(mask, x.dtype()), -1) * ones_like(x);
  const Tensor total = reduce_sum(weights, axes, true);
  const Tensor mean = reduce_sum(x * weights, axes, true) / total;
  const Tensor variance = reduce_sum(square(x - mean) * weights, axes, true) / total;
  return {squeeze(mean, axes), squeeze(variance, axes)};
}

}  // namespace

// --- BatchNormalization ---

void BatchNormalization::prepare() {
  set_supports_masking(true);
  if (!(options_.epsilon > 0) || !(options_.momentum >= 0 && options_.momentum <= 1)) {
    throw invalid_argument("[BatchNormalization] needs epsilon > 0 and momentum from 0 to 1, got {} and {}",
                           options_.epsilon, options_.momentum);
  }
}

void BatchNormalization::build(const PartialShape& input) {
  axes_ = normalized_axes(options_.axis, input, kClassName);
  Dims weight_dims;
  InputSpec spec{.ndim = input.rank()};
  for (int i = 0; i < input.rank(); ++i) {
    const bool is_channel = std::find(axes_.begin(), axes_.end(), i) != axes_.end();
    if (is_channel) {
      weight_dims.push_back(known_dim(input, i));
      spec.axes.emplace_back(i, input[i]);
    } else {
      others_.push_back(i);
      if (axes_.size() > 1) weight_dims.push_back(1);  // several axes: weights are aligned with the input
    }
  }
  set_input_spec(spec);
  track_empty("axis");
  channels_ = Shape(weight_dims);
  const DType dtype = at_least_float32(variable_dtype());
  if (options_.scale) {
    gamma = add_weight({.name = "gamma",
                        .shape = channels_,
                        .initializer = options_.gamma_initializer,
                        .regularizer = options_.gamma_regularizer,
                        .constraint = options_.gamma_constraint,
                        .dtype = dtype});
  }
  if (options_.center) {
    beta = add_weight({.name = "beta",
                       .shape = channels_,
                       .initializer = options_.beta_initializer,
                       .regularizer = options_.beta_regularizer,
                       .constraint = options_.beta_constraint,
                       .dtype = dtype});
  }
  moving_mean = add_weight({.name = "moving_mean",
                            .shape = channels_,
                            .initializer = options_.moving_mean_initializer,
                            .trainable = false,
                            .dtype = dtype});
  moving_variance = add_weight({.name = "moving_variance",
                                .shape = channels_,
                                .initializer = options_.moving_variance_initializer,
                                .trainable = false,
                                .dtype = dtype});
}

Tensor BatchNormalization::call(const Tensor& input, const CallArgs& args) {
  const bool training = args.training.value_or(false) && trainable();
  const size_t rank = axes_.size() + others_.size();
  const bool channels_last = axes_.size() == 1 && axes_[0] + 1 == static_cast<int>(rank);
  if (rank == 4 && channels_last) return call_fused(input, training);
  if (rank == 5 && channels_last) {
    const Tensor flat = reshape(input, {-1, 1, 1, channels_[0]});
    return ensure_shape(reshape(call_fused(flat, training), shape(input)), input.partial_shape());
  }
  return call_composed(input, training, args.mask);
}

// As in Keras, the variance that moves the moving one is the unbiased one here, and the biased one below.
Tensor BatchNormalization::call_fused(const Tensor& input, bool training) {
  const DType dtype = moving_mean.dtype();
  const Tensor scale = options_.scale ? gamma.value() : ones(channels_, dtype);
  const Tensor offset = options_.center ? beta.value() : zeros(channels_, dtype);
  const nn::FusedBatchNorm out = nn::fused_batch_norm(input, scale, offset,
                                                      {.mean = moving_mean,
                                                       .variance = moving_variance,
                                                       .epsilon = options_.epsilon,
                                                       .is_training = training,
                                                       .exponential_avg_factor = training ? 1 - options_.momentum : 1});
  if (training) {
    moving_mean.assign(out.mean);
    moving_variance.assign(out.variance);
  }
  return out.y;
}

Tensor BatchNormalization::call_composed(const Tensor& input, bool training, const Tensor& mask) {
  const Tensor x = cast(input, moving_mean.dtype());
  nn::Moments moments{moving_mean, moving_variance};
  if (training) {
    const std::vector<int64_t> axes(others_.begin(), others_.end());
    moments = mask.defined() ? masked_moments(x, axes, mask) : nn::moments(x, axes);
    if (axes_.size() > 1) moments = {reshape(moments.mean, channels_), reshape(moments.variance, channels_)};
    moving_mean.assign_sub((moving_mean - moments.mean) * (1 - options_.momentum));
    moving_variance.assign_sub((moving_variance - moments.variance) * (1 - options_.momentum));
  }
  // One axis that is not the last: what belongs to the channels is aligned with it.
  Dims aligned = channels_.dims();
  if (axes_.size() == 1) aligned.resize(axes_.size() + others_.size() - static_cast<size_t>(axes_[0]), 1);
  const auto align = [&](const Tensor& t) {
    return t.defined() && aligned.size() != channels_.dims().size() ? reshape(t, aligned) : t;
  };
  const Tensor out = nn::batch_normalization(x, align(moments.mean), align(moments.variance),
                                             align(options_.center ? beta.value() : Tensor()),
                                             align(options_.scale ? gamma.value() : Tensor()), options_.epsilon);
  return cast(out, input.dtype());
}

// --- LayerNormalization ---

void LayerNormalization::prepare() {
  set_supports_masking(true);
  if (!(options_.epsilon > 0)) {
    throw invalid_argument("[LayerNormalization] epsilon must be positive, got {}", options_.epsilon);
  }
}

void LayerNormalization::build(const PartialShape& input) {
  const std::vector<int> axes = normalized_axes(options_.axis, input, kClassName);
  axes_.assign(axes.begin(), axes.end());
  last_axes_ = axes.front() + static_cast<int>(axes.size()) == input.rank();
  Dims sizes;
  Dims aligned(static_cast<size_t>(input.rank()), 1);
  InputSpec spec{.ndim = input.rank()};
  for (const int axis : axes) {
    sizes.push_back(known_dim(input, axis));
    aligned[static_cast<size_t>(axis)] = sizes.back();
    spec.axes.emplace_back(axis, sizes.back());
  }
  set_input_spec(spec);
  track_empty("axis");
  aligned_ = Shape(aligned);
  if (options_.scale) {
    gamma = add_weight({.name = "gamma",
                        .shape = Shape(sizes),
                        .initializer = options_.gamma_initializer,
                        .regularizer = options_.gamma_regularizer,
                        .constraint = options_.gamma_constraint});
  }
  if (options_.center) {
    beta = add_weight({.name = "beta",
                       .shape = Shape(sizes),
                       .initializer = options_.beta_initializer,
                       .regularizer = options_.beta_regularizer,
                       .constraint = options_.beta_constraint});
  }
}

Tensor LayerNormalization::call(const Tensor& input, const CallArgs&) {
  const DType dtype = at_least_float32(input.dtype());
  const auto aligned = [&](bool used, const Variable& weight) {
    if (!used) return Tensor();
    const Tensor value = cast(weight.value(), dtype);
    return last_axes_ ? value : reshape(value, aligned_);
  };
  const Tensor out = nn::layer_normalization(cast(input, dtype), aligned(options_.scale, gamma),
                                             aligned(options_.center, beta), axes_, options_.epsilon);
  return cast(out, input.dtype());
}

}  // namespace runnel::keras
