#include "runnel/keras/applications/mobilenet_v2.h"

#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/keras/applications/image_model.h"
#include "runnel/keras/layers/activation_layers.h"
#include "runnel/keras/layers/conv.h"
#include "runnel/keras/layers/merge.h"
#include "runnel/keras/layers/normalization.h"
#include "runnel/keras/layers/resizing_layers.h"

namespace runnel::keras::applications {
namespace {

// The multiple of 8 nearest to a number of channels, never less than nine tenths of it.
int64_t whole_channels(double channels) {
  const int64_t rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

Tensor mobilenet_norm(const Tensor& x, const std::string& name) {
  return BatchNormalization({.momentum = 0.999, .epsilon = 1e-3, .name = name})(x);
}
Tensor relu_up_to_6(const Tensor& x, const std::string& name) { return ReLU({.max_value = 6, .name = name})(x); }

Tensor conv_1x1(const Tensor& x, int64_t filters, const std::string& name) {
  return Conv2D({.filters = filters, .kernel_size = {1}, .padding = "same", .use_bias = false, .name = name})(x);
}

// What makes a "valid" 3x3 convolution of stride 2 see what a "same" one would see of an even or odd size.
Margins padding_before_stride_2(const PartialShape& images) {
  const auto side = [](int64_t size) { return Margins::Pair(size == kUnknownDim || size % 2 == 0 ? 0 : 1, 1); };
  return {side(images[1]), side(images[2])};
}

struct InvertedResidual {
  int64_t filters, stride, expansion;
};

// Wider by 1x1, filtered channel by channel, narrower by 1x1; around it a shortcut where the shapes are equal.
Tensor inverted_residual(const Tensor& input, const InvertedResidual& block, double alpha, int number) {
  const std::string prefix = number == 0 ? "expanded_conv_" : fmt::format("block_{}_", number);
  const int64_t in_channels = input.partial_shape()[3];
  const int64_t out_channels = whole_channels(std::floor(static_cast<double>(block.filters) * alpha));
  Tensor x = input;
  if (number > 0) {
    x = conv_1x1(x, block.expansion * in_channels, prefix + "expand");
    x = relu_up_to_6(mobilenet_norm(x, prefix + "expand_BN"), prefix + "expand_relu");
  }
  if (block.stride == 2) {
    x = ZeroPadding2D({.padding = padding_before_stride_2(x.partial_shape()), .name = prefix + "pad"})(x);
  }
  x = DepthwiseConv2D({.kernel_size = {3},
                       .strides = {block.stride},
                       .padding = block.stride == 1 ? "same" : "valid",
                       .use_bias = false,
                       .name = prefix + "depthwise"})(x);
  x = relu_up_to_6(mobilenet_norm(x, prefix + "depthwise_BN"), prefix + "depthwise_relu");
  x = mobilenet_norm(conv_1x1(x, out_channels, prefix + "project"), prefix + "project_BN");
  return in_channels == out_channels && block.stride == 1 ? Add({.name = prefix + "add"})({input, x}) : x;
}

}  // namespace

Shared<Model> mobilenet_v2(const MobileNetV2Options& options) {
  if (!(options.alpha > 0)) throw invalid_argument("[mobilenet_v2] alpha must be positive, got {}", options.alpha);
  const PartialShape shape = image_shape(options.input_shape, options.include_top, "mobilenet_v2");
  const Tensor input = Input(shape);
  Tensor x = Conv2D({.filters = whole_channels(32 * options.alpha),
                     .kernel_size = {3},
                     .strides = {2},
                     .padding = "same",
                     .use_bias = false,
                     .name = "Conv1"})(input);
  x = relu_up_to_6(mobilenet_norm(x, "bn_Conv1"), "Conv1_relu");

  const std::pair<InvertedResidual, int> stages[] = {
      // a block and how often it comes; strides only the first time
      {{16, 1, 1}, 1}, {{24, 2, 6}, 2},  {{32, 2, 6}, 3},  {{64, 2, 6}, 4},
      {{96, 1, 6}, 3}, {{160, 2, 6}, 3}, {{320, 1, 6}, 1},
  };
  int number = 0;
  for (const auto& [first, count] : stages) {
    InvertedResidual block = first;
    for (int i = 0; i < count; ++i) {
      x = inverted_residual(x, block, options.alpha, number++);
      block.stride = 1;
    }
  }

  const int64_t last = options.alpha > 1 ? whole_channels(1280 * options.alpha) : 1280;
  x = Conv2D({.filters = last, .kernel_size = {1}, .use_bias = false, .name = "Conv_1"})(x);
  x = relu_up_to_6(mobilenet_norm(x, "Conv_1_bn"), "out_relu");
  const Tensor output = image_model_end(x,
                                        {.include_top = options.include_top,
                                         .pooling = options.pooling,
                                         .classes = options.classes,
                                         .classifier_activation = options.classifier_activation},
                                        "mobilenet_v2");
  const std::string rows = shape[0] == kUnknownDim ? "224" : std::to_string(shape[0]);
  return std::make_shared<Model>(input, output,
                                 LayerOptions{.name = fmt::format("mobilenetv2_{:.2f}_{}", options.alpha, rows)});
}

}  // namespace runnel::keras::applications
