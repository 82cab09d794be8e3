#include "runnel/keras/layers/regularization.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/random.h"

namespace runnel::keras {
namespace {

void check_rate(const char* layer, double rate) {
  if (!(rate >= 0 && rate <= 1)) throw invalid_argument("[{}] rate must be in [0, 1], got {}", layer, rate);
}

// The sizes of `wanted`, those of x where it leaves them open.
Tensor sizes_with_those_of(const Tensor& x, const PartialShape& wanted) {
  const PartialShape given = x.partial_shape();
  Dims sizes;
  std::vector<Tensor> parts;
  bool known = true;
  for (int i = 0; i < wanted.rank(); ++i) {
    sizes.push_back(wanted[i] == kUnknownDim ? given[i] : wanted[i]);
    known = known && sizes.back() != kUnknownDim;
  }
  if (known) return int_vector(sizes);
  const Tensor actual = shape(x);
  for (int i = 0; i < wanted.rank(); ++i) {
    parts.push_back(sizes[static_cast<size_t>(i)] == kUnknownDim ? actual[i]
                                                                 : Tensor(static_cast<int32_t>(sizes[static_cast<size_t>(i)])));
  }
  return stack(parts);
}

}  // namespace

void Dropout::prepare() {
  check_rate(kClassName, options_.rate);
  set_supports_masking(true);
}

Tensor Dropout::call(const Tensor& input, const CallArgs& args) {
  if (!*args.training) return input;
  nn::DropoutOptions options{.seed = options_.seed.value_or(0)};
  const PartialShape& noise = options_.noise_shape;
  if (noise.has_rank()) {
    if (noise.rank() != input.partial_shape().rank()) {
      throw invalid_argument("[Dropout] {}: noise_shape {} needs as many dimensions as the input {}", name(), noise.str(),
                             input.partial_shape().str());
    }
    options.noise_shape = sizes_with_those_of(input, noise);
  }
  return nn::dropout(input, options_.rate, options);
}

void SpatialDropout2D::prepare() {
  check_rate(kClassName, options_.rate);
  if (options_.data_format != "channels_last" && options_.data_format != "channels_first") {
    throw invalid_argument("[SpatialDropout2D] data_format is channels_last or channels_first, got '{}'",
                           options_.data_format);
  }
  set_supports_masking(true);
  set_input_spec({.ndim = 4});
}

Tensor SpatialDropout2D::call(const Tensor& input, const CallArgs& args) {
  if (!*args.training) return input;
  const bool first = options_.data_format == "channels_first";
  const PartialShape noise = first ? PartialShape{kUnknownDim, kUnknownDim, 1, 1} : PartialShape{kUnknownDim, 1, 1, kUnknownDim};
  return nn::dropout(input, options_.rate,
                     {.noise_shape = sizes_with_those_of(input, noise), .seed = options_.seed.value_or(0)});
}

void GaussianNoise::prepare() {
  if (!(options_.stddev >= 0)) {
    throw invalid_argument("[GaussianNoise] stddev must not be negative, got {}", options_.stddev);
  }
  set_supports_masking(true);
}

Tensor GaussianNoise::call(const Tensor& input, const CallArgs& args) {
  if (!*args.training) return input;
  return input + random::normal(shape(input), 0, options_.stddev, input.dtype(), options_.seed.value_or(0));
}

}  // namespace runnel::keras
