#include "runnel/keras/layers/preprocessing.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/data/dataset.h"
#include "runnel/keras/layers/image_transform.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/math.h"
#include "runnel/ops/norm.h"

namespace runnel::keras {

// --- Rescaling and Resizing ---

void Rescaling::prepare() { set_supports_masking(true); }

Tensor Rescaling::call(const Tensor& input, const CallArgs&) {
  return cast(input, compute_dtype()) * options_.scale + options_.offset;
}

void Resizing::prepare() {
  if (options_.height < 1 || options_.width < 1) {
    throw invalid_argument("[Resizing] height and width must be positive, got {} and {}", options_.height,
                           options_.width);
  }
}

Tensor Resizing::call(const Tensor& input, const CallArgs&) {
  const Tensor whole = options_.interpolation == "nearest" ? cast(input, compute_dtype()) : input;
  const Tensor images =
      options_.crop_to_aspect_ratio ? crop_to_aspect_ratio(whole, options_.height, options_.width) : whole;
  return cast(image::resize(images, {options_.height, options_.width}, {.method = options_.interpolation}),
              compute_dtype());
}

// --- Normalization ---

void Normalization::prepare() {
  if (options_.mean.empty() != options_.variance.empty() || options_.mean.size() != options_.variance.size()) {
    throw invalid_argument("[Normalization] mean and variance go together, got {} and {} values", options_.mean.size(),
                           options_.variance.size());
  }
}

Config Normalization::get_config() const {
  Config config = LayerOf::get_config();
  if (options_.mean.empty()) {
    config.set("mean", Config());
    config.set("variance", Config());
  }
  return config;
}

void Normalization::build(const PartialShape& input) {
  if (!input.has_rank()) throw invalid_argument("[Normalization] the rank of the input is not known");
  std::vector<int> kept;
  for (const int64_t a : options_.axis) kept.push_back(normalize_axis(a, input.rank(), kClassName));
  Dims sizes;
  Dims aligned;
  for (int i = 0; i < input.rank(); ++i) {
    if (std::find(kept.begin(), kept.end(), i) == kept.end()) {
      reduced_.push_back(i);
      aligned.push_back(1);
    } else {
      sizes.push_back(known_dim(input, i));
      aligned.push_back(sizes.back());
    }
  }
  aligned_ = Shape(aligned);
  const size_t given = options_.mean.size();
  if (given == 0) {
    adapt_mean = add_weight({.name = "mean", .shape = Shape(sizes), .initializer = "zeros", .trainable = false});
    track("adapt_mean", adapt_mean);  // Keras's checkpoints have both names
    adapt_variance = add_weight({.name = "variance", .shape = Shape(sizes), .initializer = "ones", .trainable = false});
    track("adapt_variance", adapt_variance);
    count = add_weight({.name = "count", .initializer = "zeros", .trainable = false, .dtype = DType::int64});
  } else if (given != 1 && static_cast<int64_t>(given) != aligned_.num_elements()) {
    throw invalid_argument("[Normalization] {} values of mean and variance for the {} positions of {}", given,
                           aligned_.num_elements(), input.str());
  }
}

Tensor Normalization::call(const Tensor& input, const CallArgs&) {
  const auto statistic = [&](const std::vector<double>& given, const Variable& adapted) {
    if (given.empty()) return reshape(compute_value(adapted), aligned_);
    const Tensor values = cast(Tensor::of<double>(given), compute_dtype());
    return given.size() == 1 ? reshape(values, Shape()) : reshape(values, aligned_);
  };
  const Tensor mean = statistic(options_.mean, adapt_mean);
  const Tensor deviation = maximum(sqrt(statistic(options_.variance, adapt_variance)), 1e-7);
  const Tensor x = cast(input, compute_dtype());
  return options_.invert ? x * deviation + mean : (x - mean) / deviation;
}

void Normalization::adapt(const Tensor& data) {
  begin_to_adapt(data);
  take_batch(data);
}

void Normalization::adapt(const data::AnyDataset& batches) {
  data::AnyIterator pass(data::nodes::finite(batches.node(), "Normalization.adapt"));
  bool first = true;
  while (const auto batch = pass.next()) {
    if (!batch->is_leaf()) {
      throw invalid_argument("[Normalization] adapt needs a dataset of inputs alone, without labels: map them away");
    }
    if (std::exchange(first, false)) begin_to_adapt(batch->leaf());
    take_batch(batch->leaf());
  }
  if (first) throw invalid_argument("[Normalization] adapt got a dataset without elements");
}

void Normalization::begin_to_adapt(const Tensor& batch) {
  if (!options_.mean.empty()) {
    throw make_error(Code::failed_precondition, "[Normalization] adapt of a layer whose mean and variance are given");
  }
  Dims dims = batch.shape().dims();
  if (!dims.empty()) dims[0] = kUnknownDim;
  build_from_shapes(PartialShape(dims));
  adapt_mean.assign(zeros(adapt_mean.shape(), adapt_mean.dtype()));
  adapt_variance.assign(ones(adapt_variance.shape(), adapt_variance.dtype()));
  count.assign(constant(0, DType::int64));
}

// The statistics of what came before and of the batch, each with the weight of its samples.
void Normalization::take_batch(const Tensor& batch) {
  const DType dtype = adapt_mean.dtype();
  const nn::Moments now = nn::moments(cast(batch, dtype), reduced_);
  int64_t samples = 1;
  for (const int64_t d : reduced_) samples *= batch.shape()[static_cast<int>(d)];
  if (samples == 0) return;
  count.assign_add(constant(samples, DType::int64));
  const Tensor weight = constant(samples, dtype) / cast(count, dtype);
  const Tensor mean = adapt_mean * (1 - weight) + now.mean * weight;
  adapt_variance.assign((adapt_variance + square(adapt_mean - mean)) * (1 - weight) +
                        (now.variance + square(now.mean - mean)) * weight);
  adapt_mean.assign(mean);
}

}  // namespace runnel::keras
