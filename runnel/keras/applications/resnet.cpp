#include "runnel/keras/applications/resnet.h"

#include "runnel/base/format.h"
#include "runnel/keras/applications/image_model.h"
#include "runnel/keras/layers/activation_layers.h"
#include "runnel/keras/layers/conv.h"
#include "runnel/keras/layers/merge.h"
#include "runnel/keras/layers/normalization.h"
#include "runnel/keras/layers/pooling.h"
#include "runnel/keras/layers/resizing_layers.h"

namespace runnel::keras::applications {
namespace {

// A convolution and its normalization, "<name>_conv" and "<name>_bn".
Tensor resnet_conv(const Tensor& x, const ConvOptions& conv, const std::string& name) {
  ConvOptions named = conv;
  named.name = name + "_conv";
  return BatchNormalization({.epsilon = 1.001e-5, .name = name + "_bn"})(Conv2D(named)(x));
}
Tensor resnet_relu(const Tensor& x, const std::string& name) {
  return ActivationLayer({.activation = "relu", .name = name})(x);
}

// Narrower by 1x1, 3x3, four times wider by 1x1; the shortcut around it has a convolution where the shape changes.
Tensor residual_block(const Tensor& input, int64_t filters, int64_t stride, bool conv_shortcut,
                      const std::string& name) {
  const Tensor shortcut =
      conv_shortcut ? resnet_conv(input, {.filters = 4 * filters, .kernel_size = {1}, .strides = {stride}}, name + "_0")
                    : input;
  Tensor x = resnet_conv(input, {.filters = filters, .kernel_size = {1}, .strides = {stride}}, name + "_1");
  x = resnet_relu(x, name + "_1_relu");
  x = resnet_conv(x, {.filters = filters, .kernel_size = {3}, .padding = "same"}, name + "_2");
  x = resnet_relu(x, name + "_2_relu");
  x = resnet_conv(x, {.filters = 4 * filters, .kernel_size = {1}}, name + "_3");
  return resnet_relu(Add({.name = name + "_add"})({shortcut, x}), name + "_out");
}

Tensor residual_stack(Tensor x, int64_t filters, int blocks, int64_t first_stride, const std::string& name) {
  for (int i = 1; i <= blocks; ++i) {
    x = residual_block(x, filters, i == 1 ? first_stride : 1, i == 1, fmt::format("{}_block{}", name, i));
  }
  return x;
}

}  // namespace

Shared<Model> resnet50(const ResNet50Options& options) {
  const Tensor input = Input(image_shape(options.input_shape, options.include_top, "resnet50"));
  Tensor x = ZeroPadding2D({.padding = 3, .name = "conv1_pad"})(input);
  x = resnet_relu(resnet_conv(x, {.filters = 64, .kernel_size = {7}, .strides = {2}}, "conv1"), "conv1_relu");
  x = ZeroPadding2D({.padding = 1, .name = "pool1_pad"})(x);
  x = MaxPooling2D({.pool_size = {3}, .strides = {2}, .name = "pool1_pool"})(x);
  x = residual_stack(x, 64, 3, 1, "conv2");
  x = residual_stack(x, 128, 4, 2, "conv3");
  x = residual_stack(x, 256, 6, 2, "conv4");
  x = residual_stack(x, 512, 3, 2, "conv5");
  const Tensor output = image_model_end(x,
                                        {.include_top = options.include_top,
                                         .pooling = options.pooling,
                                         .classes = options.classes,
                                         .classifier_activation = options.classifier_activation,
                                         .average_name = "avg_pool",
                                         .max_name = "max_pool"},
                                        "resnet50");
  return std::make_shared<Model>(input, output, LayerOptions{.name = "resnet50"});
}

}  // namespace runnel::keras::applications
