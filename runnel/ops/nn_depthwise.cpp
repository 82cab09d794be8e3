// Convolutions of every channel by itself.
#include "runnel/op/composed.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_conv.h"

namespace runnel {
namespace {

struct DepthwiseAttrs {
  std::vector<int64_t> strides = {1, 1, 1, 1};
  std::string padding = "VALID";
  std::vector<int64_t> explicit_paddings;
  std::string data_format = "NHWC";
  std::vector<int64_t> dilations = {1, 1, 1, 1};
  static constexpr auto fields() {
    using A = DepthwiseAttrs;
    return field_list(field("strides", &A::strides, {.required = true}),
                      field("padding", &A::padding, {.required = true, .texts = "SAME|VALID|EXPLICIT"}),
                      field("explicit_paddings", &A::explicit_paddings),
                      field("data_format", &A::data_format, {.texts = "NHWC|NCHW"}), field("dilations", &A::dilations));
  }
  static constexpr int dims = 2;
  static constexpr bool depthwise = true;
  static constexpr const char* forward = "DepthwiseConv2dNative";
  static constexpr const char* backprop_input = "DepthwiseConv2dNativeBackpropInput";
  static constexpr const char* backprop_filter = "DepthwiseConv2dNativeBackpropFilter";
  WindowSpec spec() const { return {dims, strides, dilations, padding, &explicit_paddings}; }
};

}  // namespace

void register_nn_depthwise(Registry& r) {
  using A = DepthwiseAttrs;
  const Tensor x = Tensor{{{{1.f, 10.f}, {2.f, 20.f}, {3.f, 30.f}}}};                 // [1, 1, 3, 2]
  const Tensor w = Tensor{{{{1.f, 2.f}, {-1.f, 0.5f}}, {{3.f, 0.f}, {1.f, 0.25f}}}};  // [1, 2, 2, 2]
  const Tensor dy = Tensor{{{{1.f, 2.f, 0.f, 4.f}, {0.f, 1.f, 1.f, 0.f}}}};           // [1, 1, 2, 4]
  define_conv<A>(r, floating)
      .doc(
          "The convolution of every channel of [batch, height, width, channels] with its own filters, of "
          "[height, "
          "width, channels, multiplier].")
      .sample({.in = {x, w}, .out = {Tensor{{{{7.f, 2.f, 10.f, 10.f}, {11.f, 4.f, 10.f, 17.5f}}}}}})
      .sample({.in = {x, w}}, {.strides = {1, 2, 2, 1}, .padding = "SAME"})
      .sample({.in = {x, w}, .error = "attr 'padding' of \"TIGHT\""}, {.padding = "TIGHT"})
      .sample({.in = {Tensor{{{{1.f, 10.f, 3.f}}}}, w}, .error = "the filter is for 2 channels"}, {.padding = "SAME"});
  finish_backprop_input<A>(r.define<A>(A::backprop_input).type("T", floating).in_host("input_sizes", DType::int32))
      .doc("The gradient of DepthwiseConv2dNative by its input.")
      .sample({.in = {Tensor{1, 1, 3, 2}, w, dy}, .out = {Tensor{{{{5.f, 2.f}, {5.f, 0.f}, {0.f, 1.f}}}}}})
      .sample({.in = {Tensor{1, 1, 4, 2}, w, dy}, .error = "got [1,1,2,4]"});
  finish_backprop_filter<A>(r.define<A>(A::backprop_filter).in("input", floating))
      .doc("The gradient of DepthwiseConv2dNative by its filter.")
      .sample({.in = {x, Tensor{1, 2, 2, 2}, dy},
               .out = {Tensor{{{{1.f, 4.f}, {20.f, 40.f}}, {{2.f, 7.f}, {30.f, 80.f}}}}}});
}

namespace nn {

Tensor depthwise_conv2d(const Operand& input, const Operand& filter, const ConvOptions& o) {
  return composed(input.where(), [&]() -> Tensor {
    const char* op = DepthwiseAttrs::forward;
    return conv<DepthwiseAttrs>(
        input, filter,
        {.strides = full_list(o.strides, 2, op, "strides"),
         .padding = o.explicit_paddings.empty() || o.padding != "VALID" ? o.padding : "EXPLICIT",
         .explicit_paddings = full_paddings(o.explicit_paddings, 2, op),
         .data_format = o.data_format.empty() ? "NHWC" : o.data_format,
         .dilations = full_list(o.dilations, 2, op, "dilations")});
  });
}

Tensor separable_conv2d(const Operand& input, const Operand& depthwise_filter, const Operand& pointwise_filter,
                        const ConvOptions& options) {
  return composed(input.where(),
                  [&] { return conv2d(depthwise_conv2d(input, depthwise_filter, options), pointwise_filter, {}); });
}

}  // namespace nn
}  // namespace runnel
