#pragma once

#include "runnel/keras/layers/kernel_options.h"

namespace runnel::keras {

// What all convolutions can be told; their tensors are [batch, spatial..., channels].
template <class O>
constexpr auto filters_fields() {
  return field_list(field("filters", &O::filters, "the number of output channels"));
}
template <class O>
constexpr auto window_fields() {
  return field_list(field("kernel_size", &O::kernel_size, "one number for every spatial dimension, or one for all"),
                    field("strides", &O::strides, "one number for every spatial dimension, or one for all"),
                    field("padding", &O::padding,
                          "\"valid\": windows lie within the input; \"same\": zeros at its sides keep its size at "
                          "stride 1; Conv1D also "
                          "\"causal\": none sees later steps"));
}
template <class O>
constexpr auto grid_fields() {
  return field_list(field("data_format", &O::data_format, "\"channels_last\""),
                    field("dilation_rate", &O::dilation_rate, "the distance between the cells of a window"));
}
template <class O>
constexpr auto multiplier_fields() {
  return field_list(field("depth_multiplier", &O::depth_multiplier, "outputs of every channel"));
}

struct RUNNEL_API ConvOptions {
  NamedOnly named_only = {};
  int64_t filters = 0;
  IntTuple kernel_size = {};
  IntTuple strides = {1};
  std::string padding = "valid";
  std::string data_format = "channels_last";
  IntTuple dilation_rate = {1};
  int64_t groups = 1;
  Activation activation = {};
  bool use_bias = true;
  RUNNEL_KERNEL_OPTIONS;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ConvOptions::filters, &ConvOptions::kernel_size>;
  static constexpr auto fields() {
    using O = ConvOptions;
    return joined_fields(
        filters_fields<O>(), window_fields<O>(), grid_fields<O>(),
        field_list(field("groups", &O::groups, "the channels are cut into so many groups that do not see each other")),
        activation_fields<O>(), kernel_fields<O>());
  }
};

struct RUNNEL_API Conv2DTransposeOptions {
  NamedOnly named_only = {};
  int64_t filters = 0;
  IntTuple kernel_size = {};
  IntTuple strides = {1};
  std::string padding = "valid";
  IntTuple output_padding = {};
  std::string data_format = "channels_last";
  IntTuple dilation_rate = {1};
  Activation activation = {};
  bool use_bias = true;
  RUNNEL_KERNEL_OPTIONS;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&Conv2DTransposeOptions::filters, &Conv2DTransposeOptions::kernel_size>;
  static constexpr auto fields() {
    using O = Conv2DTransposeOptions;
    return joined_fields(
        filters_fields<O>(), window_fields<O>(),
        field_list(field("output_padding", &O::output_padding,
                         "cells at the end of the output, fewer than the stride; then its size is exact")),
        grid_fields<O>(), activation_fields<O>(), kernel_fields<O>());
  }
};

struct RUNNEL_API DepthwiseConv2DOptions {
  NamedOnly named_only = {};
  IntTuple kernel_size = {};
  IntTuple strides = {1};
  std::string padding = "valid";
  int64_t depth_multiplier = 1;
  std::string data_format = "channels_last";
  IntTuple dilation_rate = {1};
  Activation activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&DepthwiseConv2DOptions::kernel_size>;
  static constexpr auto fields() {
    using O = DepthwiseConv2DOptions;
    return joined_fields(
        window_fields<O>(), multiplier_fields<O>(), grid_fields<O>(), activation_fields<O>(),
        field_list(field("depthwise_initializer", &O::depthwise_initializer, "of the depthwise kernel"),
                   field("bias_initializer", &O::bias_initializer, "of the bias"),
                   field("depthwise_regularizer", &O::depthwise_regularizer, "a loss on the depthwise kernel"),
                   field("bias_regularizer", &O::bias_regularizer, "a loss on the bias"),
                   field("activity_regularizer", &O::activity_regularizer, "a loss on the output"),
                   field("depthwise_constraint", &O::depthwise_constraint,
                         "what the depthwise kernel is brought to after a step"),
                   field("bias_constraint", &O::bias_constraint, "what the bias is brought to after a step")));
  }
};

struct RUNNEL_API SeparableConv2DOptions {
  NamedOnly named_only = {};
  int64_t filters = 0;
  IntTuple kernel_size = {};
  IntTuple strides = {1};
  std::string padding = "valid";
  std::string data_format = "channels_last";
  IntTuple dilation_rate = {1};
  int64_t depth_multiplier = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer pointwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&SeparableConv2DOptions::filters, &SeparableConv2DOptions::kernel_size>;
  static constexpr auto fields() {
    using O = SeparableConv2DOptions;
    return joined_fields(
        filters_fields<O>(), window_fields<O>(), grid_fields<O>(), multiplier_fields<O>(), activation_fields<O>(),
        field_list(field("depthwise_initializer", &O::depthwise_initializer, "of the depthwise kernel"),
                   field("pointwise_initializer", &O::pointwise_initializer, "of the pointwise kernel"),
                   field("bias_initializer", &O::bias_initializer, "of the bias"),
                   field("depthwise_regularizer", &O::depthwise_regularizer, "a loss on the depthwise kernel"),
                   field("pointwise_regularizer", &O::pointwise_regularizer, "a loss on the pointwise kernel"),
                   field("bias_regularizer", &O::bias_regularizer, "a loss on the bias"),
                   field("activity_regularizer", &O::activity_regularizer, "a loss on the output"),
                   field("depthwise_constraint", &O::depthwise_constraint,
                         "what the depthwise kernel is brought to after a step"),
                   field("pointwise_constraint", &O::pointwise_constraint,
                         "what the pointwise kernel is brought to after a step"),
                   field("bias_constraint", &O::bias_constraint, "what the bias is brought to after a step")));
  }
};

// What all convolutions over `Dims` dimensions share: checked settings, the bias, the activation.
template <class Self, class Options, int Dims>
class RUNNEL_API ConvFamily : public LayerOf<Self, Options> {
 public:
  using LayerOf<Self, Options>::LayerOf;
  void prepare() override;
  Config get_config() const override;  // lists with one value for every dimension

  Variable bias;  // [outputs], unless use_bias is false

 protected:
  static constexpr int kDims = Dims;
  // {kernel sizes..., inputs, outputs}
  Shape kernel_shape(int64_t inputs, int64_t outputs) const;
  int64_t input_channels(const PartialShape& input);  // calls must have as many from now on
  void add_bias(int64_t outputs);
  Tensor with_bias_and_activation(Tensor outputs) const;
};

// Conv1D, Conv2D and Conv3D.
template <class Self, int Dims>
class RUNNEL_API ConvOver : public ConvFamily<Self, ConvOptions, Dims> {
 public:
  using ConvFamily<Self, ConvOptions, Dims>::ConvFamily;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  Variable kernel;  // [kernel_size..., inputs / groups, filters]
};

// Over time: [batch, steps, channels].
class RUNNEL_API Conv1D : public ConvOver<Conv1D, 1> {
 public:
  static constexpr const char* kClassName = "Conv1D";
  using ConvOver::ConvOver;
};
// Over images: [batch, height, width, channels].
class RUNNEL_API Conv2D : public ConvOver<Conv2D, 2> {
 public:
  static constexpr const char* kClassName = "Conv2D";
  using ConvOver::ConvOver;
};
// Over volumes: [batch, depth, height, width, channels].
class RUNNEL_API Conv3D : public ConvOver<Conv3D, 3> {
 public:
  static constexpr const char* kClassName = "Conv3D";
  using ConvOver::ConvOver;
};

// The transpose of a convolution: enlarges images by the strides.
class RUNNEL_API Conv2DTranspose : public ConvFamily<Conv2DTranspose, Conv2DTransposeOptions, 2> {
 public:
  static constexpr const char* kClassName = "Conv2DTranspose";
  using ConvFamily::ConvFamily;
  void prepare() override;
  Config get_config() const override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  Variable kernel;  // [height, width, filters, inputs]
};

// Every channel with filters of its own.
class RUNNEL_API DepthwiseConv2D : public ConvFamily<DepthwiseConv2D, DepthwiseConv2DOptions, 2> {
 public:
  static constexpr const char* kClassName = "DepthwiseConv2D";
  using ConvFamily::ConvFamily;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  Variable depthwise_kernel;  // [height, width, inputs, depth_multiplier]
};

// A depthwise convolution, then one of size 1 that mixes the channels.
class RUNNEL_API SeparableConv2D : public ConvFamily<SeparableConv2D, SeparableConv2DOptions, 2> {
 public:
  static constexpr const char* kClassName = "SeparableConv2D";
  using ConvFamily::ConvFamily;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  Variable depthwise_kernel;  // [height, width, inputs, depth_multiplier]
  Variable pointwise_kernel;  // [1, 1, inputs * depth_multiplier, filters]
};

extern template class ConvFamily<Conv1D, ConvOptions, 1>;
extern template class ConvFamily<Conv2D, ConvOptions, 2>;
extern template class ConvFamily<Conv3D, ConvOptions, 3>;
extern template class ConvFamily<Conv2DTranspose, Conv2DTransposeOptions, 2>;
extern template class ConvFamily<DepthwiseConv2D, DepthwiseConv2DOptions, 2>;
extern template class ConvFamily<SeparableConv2D, SeparableConv2DOptions, 2>;
extern template class ConvOver<Conv1D, 1>;
extern template class ConvOver<Conv2D, 2>;
extern template class ConvOver<Conv3D, 3>;

using Convolution1D = Conv1D;
using Convolution2D = Conv2D;
using Convolution3D = Conv3D;
using Deconvolution2D = Conv2DTranspose;

}  // namespace runnel::keras
