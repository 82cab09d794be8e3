#include "runnel/keras/layers/conv.h"

#include "runnel/keras/layers/window_settings.h"
#include "runnel/ops/array.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {
namespace {

template <class Options>
nn::ConvOptions conv_op_options(const Options& o, const char* layer) {
  nn::ConvOptions options{.strides = o.strides, .dilations = o.dilation_rate};
  if (o.padding == "causal") {
    options.explicit_paddings = {o.dilation_rate[0] * (o.kernel_size[0] - 1), 0};
  } else {
    options.padding = op_padding(o.padding, layer);
  }
  return options;
}

void require_positive(int64_t value, const char* layer, const char* setting) {
  if (value < 1) throw invalid_argument("[{}] {} must be positive, got {}", layer, setting, value);
}

}  // namespace

// --- what all share ---

template <class Self, class Options, int Dims>
void ConvFamily<Self, Options, Dims>::prepare() {
  Options& o = this->options_;
  const char* layer = Self::kClassName;
  if constexpr (requires { o.filters; }) require_positive(o.filters, layer, "filters");
  if constexpr (requires { o.depth_multiplier; }) require_positive(o.depth_multiplier, layer, "depth_multiplier");
  o.kernel_size = per_dimension(o.kernel_size, Dims, layer, "kernel_size");
  o.strides = per_dimension(o.strides, Dims, layer, "strides");
  o.dilation_rate = per_dimension(o.dilation_rate, Dims, layer, "dilation_rate");
  require_channels_last(o.data_format, layer);
  if (!(std::is_same_v<Self, Conv1D> && o.padding == "causal")) op_padding(o.padding, layer);
  this->set_input_spec({.ndim = Dims + 2});
  this->set_activity_regularizer(o.activity_regularizer);
}

template <class Self, class Options, int Dims>
Config ConvFamily<Self, Options, Dims>::get_config() const {
  const Options& o = this->options_;
  Config config = LayerOf<Self, Options>::get_config();
  config.set("kernel_size", per_dimension(o.kernel_size, Dims, Self::kClassName, "kernel_size"));
  config.set("strides", per_dimension(o.strides, Dims, Self::kClassName, "strides"));
  config.set("dilation_rate", per_dimension(o.dilation_rate, Dims, Self::kClassName, "dilation_rate"));
  if (!config.find("groups")) config.set("groups", 1);  // Keras writes it for all
  return config;
}

template <class Self, class Options, int Dims>
Shape ConvFamily<Self, Options, Dims>::kernel_shape(int64_t inputs, int64_t outputs) const {
  std::vector<int64_t> dims = this->options_.kernel_size;
  dims.push_back(inputs);
  dims.push_back(outputs);
  return Shape(dims);
}

template <class Self, class Options, int Dims>
int64_t ConvFamily<Self, Options, Dims>::input_channels(const PartialShape& input) {
  const int64_t channels = this->known_dim(input, -1);
  this->set_input_spec({.ndim = Dims + 2, .axes = {{-1, channels}}});
  return channels;
}

template <class Self, class Options, int Dims>
void ConvFamily<Self, Options, Dims>::add_bias(int64_t outputs) {
  const Options& o = this->options_;
  if (!o.use_bias) return;
  bias = this->add_weight({.name = "bias",
                           .shape = {outputs},
                           .initializer = o.bias_initializer,
                           .regularizer = o.bias_regularizer,
                           .constraint = o.bias_constraint});
}

template <class Self, class Options, int Dims>
Tensor ConvFamily<Self, Options, Dims>::with_bias_and_activation(Tensor outputs) const {
  const Options& o = this->options_;
  require_output(outputs, Self::kClassName, this->name(), o.kernel_size);
  if (o.use_bias) outputs = nn::bias_add(outputs, this->compute_value(bias));
  return o.activation ? o.activation(outputs) : outputs;
}

// --- Conv1D, Conv2D, Conv3D ---

template <class Self, int Dims>
void ConvOver<Self, Dims>::prepare() {
  ConvFamily<Self, ConvOptions, Dims>::prepare();
  const ConvOptions& o = this->options_;
  require_positive(o.groups, Self::kClassName, "groups");
  if (o.filters % o.groups != 0) {
    throw invalid_argument("[{}] {} filters cannot be shared by {} groups", Self::kClassName, o.filters, o.groups);
  }
}

template <class Self, int Dims>
void ConvOver<Self, Dims>::build(const PartialShape& input) {
  const ConvOptions& o = this->options_;
  const int64_t channels = this->input_channels(input);
  if (channels % o.groups != 0) {
    throw invalid_argument("[{}] the {} channels of an input {} cannot be cut into {} groups", Self::kClassName,
                           channels, input.str(), o.groups);
  }
  kernel = this->add_weight({.name = "kernel",
                             .shape = this->kernel_shape(channels / o.groups, o.filters),
                             .initializer = o.kernel_initializer,
                             .regularizer = o.kernel_regularizer,
                             .constraint = o.kernel_constraint});
  this->add_bias(o.filters);
}

template <class Self, int Dims>
Tensor ConvOver<Self, Dims>::call(const Tensor& input, const CallArgs&) {
  const nn::ConvOptions options = conv_op_options(this->options_, Self::kClassName);
  const Tensor weight = this->compute_value(kernel);
  if constexpr (Dims == 1) {
    return this->with_bias_and_activation(nn::conv1d(input, weight, options));
  } else if constexpr (Dims == 2) {
    return this->with_bias_and_activation(nn::conv2d(input, weight, options));
  } else {
    return this->with_bias_and_activation(nn::conv3d(input, weight, options));
  }
}

// --- Conv2DTranspose ---

void Conv2DTranspose::prepare() {
  ConvFamily::prepare();
  std::vector<int64_t>& extra = options_.output_padding;
  if (extra.empty()) return;
  if (extra.size() == 1) extra.assign(2, extra[0]);
  for (size_t d = 0; d < extra.size(); ++d) {
    if (extra.size() == 2 && extra[d] >= 0 && extra[d] < options_.strides[d]) continue;
    throw invalid_argument(
        "[Conv2DTranspose] output_padding must be 1 or 2 numbers from 0 to below the strides [{}], got [{}]",
        comma_separated(options_.strides), comma_separated(extra));
  }
}

Config Conv2DTranspose::get_config() const {
  Config config = ConvFamily::get_config();
  if (options_.output_padding.empty()) config.set("output_padding", Config());
  return config;
}

void Conv2DTranspose::build(const PartialShape& input) {
  kernel = add_weight({.name = "kernel",
                       .shape = kernel_shape(options_.filters, input_channels(input)),
                       .initializer = options_.kernel_initializer,
                       .regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  add_bias(options_.filters);
}

Tensor Conv2DTranspose::call(const Tensor& input, const CallArgs&) {
  const auto& o = options_;
  // An output dimension has stride * input + rest cells.
  const auto rest = [&](size_t d) {
    const int64_t extent = (o.kernel_size[d] - 1) * o.dilation_rate[d] + 1;
    const bool same = o.padding == "same";
    if (o.output_padding.empty()) return same ? 0 : std::max<int64_t>(extent - o.strides[d], 0);
    return extent - o.strides[d] - (same ? extent / 2 * 2 : 0) + o.output_padding[d];
  };
  const PartialShape in = shape_of_rank(input, 4);
  Dims sizes{in[0]};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t size = in[static_cast<int>(d) + 1];
    sizes.push_back(size == kUnknownDim ? kUnknownDim : size * o.strides[d] + rest(d));
  }
  sizes.push_back(o.filters);
  const PartialShape known(sizes);
  const Tensor weight = compute_value(kernel);
  const nn::ConvOptions options = conv_op_options(o, kClassName);
  if (known.is_static()) return with_bias_and_activation(nn::conv2d_transpose(input, weight, sizes, options));

  const Tensor now = shape(input);
  std::vector<Tensor> parts;
  for (size_t i = 0; i < 4; ++i) {
    if (sizes[i] != kUnknownDim) {
      parts.push_back(int_scalar(sizes[i]));
    } else {
      parts.push_back(i == 0 ? now[0] : now[static_cast<int64_t>(i)] * o.strides[i - 1] + rest(i - 1));
    }
  }
  const Tensor out = nn::conv2d_transpose(input, weight, stack(parts), options);
  return with_bias_and_activation(ensure_shape(out, known));  // what the sizes in a tensor do not tell
}

// --- DepthwiseConv2D and SeparableConv2D ---

void DepthwiseConv2D::build(const PartialShape& input) {
  const int64_t channels = input_channels(input);
  depthwise_kernel = add_weight({.name = "depthwise_kernel",
                                 .shape = kernel_shape(channels, options_.depth_multiplier),
                                 .initializer = options_.depthwise_initializer,
                                 .regularizer = options_.depthwise_regularizer,
                                 .constraint = options_.depthwise_constraint});
  add_bias(channels * options_.depth_multiplier);
}

Tensor DepthwiseConv2D::call(const Tensor& input, const CallArgs&) {
  return with_bias_and_activation(
      nn::depthwise_conv2d(input, compute_value(depthwise_kernel), conv_op_options(options_, kClassName)));
}

void SeparableConv2D::build(const PartialShape& input) {
  const int64_t channels = input_channels(input);
  depthwise_kernel = add_weight({.name = "depthwise_kernel",
                                 .shape = kernel_shape(channels, options_.depth_multiplier),
                                 .initializer = options_.depthwise_initializer,
                                 .regularizer = options_.depthwise_regularizer,
                                 .constraint = options_.depthwise_constraint});
  pointwise_kernel = add_weight({.name = "pointwise_kernel",
                                 .shape = {1, 1, channels * options_.depth_multiplier, options_.filters},
                                 .initializer = options_.pointwise_initializer,
                                 .regularizer = options_.pointwise_regularizer,
                                 .constraint = options_.pointwise_constraint});
  add_bias(options_.filters);
}

Tensor SeparableConv2D::call(const Tensor& input, const CallArgs&) {
  return with_bias_and_activation(nn::separable_conv2d(
      input, compute_value(depthwise_kernel), compute_value(pointwise_kernel), conv_op_options(options_, kClassName)));
}

template class ConvFamily<Conv1D, ConvOptions, 1>;
template class ConvFamily<Conv2D, ConvOptions, 2>;
template class ConvFamily<Conv3D, ConvOptions, 3>;
template class ConvFamily<Conv2DTranspose, Conv2DTransposeOptions, 2>;
template class ConvFamily<DepthwiseConv2D, DepthwiseConv2DOptions, 2>;
template class ConvFamily<SeparableConv2D, SeparableConv2DOptions, 2>;
template class ConvOver<Conv1D, 1>;
template class ConvOver<Conv2D, 2>;
template class ConvOver<Conv3D, 3>;

}  // namespace runnel::keras
