#include "runnel/keras/layers/activation_layers.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {
namespace {

// Added to what a softmax shall leave out.
double large_negative(DType dtype) { return dtype == DType::float16 ? -65504. : -1e9; }

}  // namespace

void ActivationLayer::prepare() { set_supports_masking(true); }

Tensor ActivationLayer::call(const Tensor& input, const CallArgs&) {
  return options_.activation ? options_.activation(input) : input;
}

void Softmax::prepare() {
  if (options_.axis.empty()) throw invalid_argument("[Softmax] axis names no dimension");
  set_supports_masking(true);
}

Tensor Softmax::call(const Tensor& input, const CallArgs& args) {
  Tensor x = input;
  if (args.mask.defined()) x = x + (1 - cast(args.mask, x.dtype())) * large_negative(x.dtype());
  if (options_.axis.size() == 1) return nn::softmax(x, static_cast<int>(options_.axis[0]));
  return exp(x - reduce_logsumexp(x, options_.axis, true));
}

void ReLU::prepare() {
  const auto check = [](const char* what, double value) {
    if (!(value >= 0)) throw invalid_argument("[ReLU] {} must not be negative, got {}", what, value);
  };
  check("max_value", options_.max_value.value_or(0));
  check("negative_slope", options_.negative_slope);
  check("threshold", options_.threshold);
  set_supports_masking(true);
}

Tensor ReLU::call(const Tensor& input, const CallArgs&) {
  const auto& [max_value, slope, threshold] = std::tie(options_.max_value, options_.negative_slope, options_.threshold);
  if (!max_value && threshold == 0) return slope == 0 ? nn::relu(input) : nn::leaky_relu(input, slope);
  if (max_value == 6.0 && threshold == 0 && slope == 0) return nn::relu6(input);  // one pass, forward and back
  Tensor out = threshold == 0 ? nn::relu(input) : input * cast(input > threshold, input.dtype());
  if (max_value) out = clip_by_value(out, 0, *max_value);
  return slope == 0 ? out : out - nn::relu(threshold - input) * slope;
}

void LeakyReLU::prepare() { set_supports_masking(true); }

Tensor LeakyReLU::call(const Tensor& input, const CallArgs&) { return nn::leaky_relu(input, options_.alpha); }

void ELU::prepare() { set_supports_masking(true); }

Tensor ELU::call(const Tensor& input, const CallArgs&) { return activations::elu(options_.alpha)(input); }

void PReLU::prepare() { set_supports_masking(true); }

void PReLU::build(const PartialShape& input) {
  if (!input.has_rank()) throw invalid_argument("[PReLU] {}: the rank of the input must be known", name());
  const int rank = input.rank();
  std::vector<int64_t> shared;
  for (const int64_t axis : options_.shared_axes) {
    shared.push_back(normalize_axis(axis, rank, "shared_axes of PReLU"));
    if (shared.back() == 0) throw invalid_argument("[PReLU] {}: the batch is no axis of alpha to share", name());
  }
  Dims dims;
  InputSpec spec{.ndim = rank};
  for (int i = 1; i < rank; ++i) {
    const bool is_shared = std::ranges::find(shared, i) != shared.end();
    dims.push_back(is_shared ? 1 : known_dim(input, i));
    if (!is_shared) spec.axes.emplace_back(i, dims.back());
  }
  alpha = add_weight({.name = "alpha",
                      .shape = Shape(dims),
                      .initializer = options_.alpha_initializer,
                      .regularizer = options_.alpha_regularizer,
                      .constraint = options_.alpha_constraint});
  set_input_spec(std::move(spec));
}

Tensor PReLU::call(const Tensor& input, const CallArgs&) {
  return nn::relu(input) - compute_value(alpha) * nn::relu(-input);
}

Config PReLU::get_config() const {
  Config config = LayerOf::get_config();
  if (options_.shared_axes.empty()) config.set("shared_axes", Config());
  return config;
}

}  // namespace runnel::keras
