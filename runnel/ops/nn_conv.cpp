// Convolutions over two and three dimensions; over one through two.
#include "runnel/ops/nn_conv.h"

#include "runnel/op/composed.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/nn.h"

namespace runnel {

ConvGeometry conv_geometry(const WindowSpec& spec, bool depthwise, const PartialShape& input,
                           const PartialShape& filter) {
  const int rank = spec.dims + 2;
  for (const auto& [name, s] : {std::pair{"input", &input}, std::pair{"filter", &filter}}) {
    if (s->has_rank() && s->rank() != rank)
      throw invalid_argument("{} must have rank {}, got {}", name, rank, s->str());
  }
  ConvGeometry g;
  g.dims = spec.dims;
  Dims in(static_cast<size_t>(spec.dims), kUnknownDim);
  Dims size = in;
  for (int d = 0; d < spec.dims; ++d) {
    if (input.has_rank()) in[static_cast<size_t>(d)] = input[d + 1];
    if (filter.has_rank()) size[static_cast<size_t>(d)] = filter[d];
  }
  g.windows = place_windows(spec, in, size);
  if (input.has_rank()) {
    g.batch = input[0];
    g.in_channels = input[rank - 1];
  }
  if (!filter.has_rank()) return g;
  const int64_t filter_in = filter[rank - 2];
  const int64_t last = filter[rank - 1];
  if (depthwise) {
    if (g.in_channels >= 0 && filter_in >= 0 && g.in_channels != filter_in) {
      throw invalid_argument("the filter is for {} channels, the input has {}: {} and {}", filter_in, g.in_channels,
                             input.str(), filter.str());
    }
    g.groups = std::max(g.in_channels, filter_in);
    g.out_channels = g.groups < 0 || last < 0 ? kUnknownDim : checked_times(g.groups, last);
    return g;
  }
  g.out_channels = last;
  if (g.in_channels < 0 || filter_in < 0) return g;
  if (filter_in == 0 || g.in_channels % filter_in != 0) {
    throw invalid_argument("the input's {} channels are no multiple of the filter's {}: {} and {}", g.in_channels,
                           filter_in, input.str(), filter.str());
  }
  g.groups = g.in_channels / filter_in;
  if (last >= 0 && g.groups > 0 && last % g.groups != 0) {
    throw invalid_argument("{} output channels cannot be shared by {} groups: {} and {}", last, g.groups, input.str(),
                           filter.str());
  }
  return g;
}

PartialShape ConvGeometry::output() const {
  Dims dims_out{batch};
  for (int d = 0; d < dims; ++d) dims_out.push_back(windows[static_cast<size_t>(d)].out);
  dims_out.push_back(out_channels);
  return PartialShape(dims_out);
}

cpu::ConvShape ConvGeometry::shape() const {
  cpu::ConvShape s;
  s.dims = dims;
  s.batch = batch;
  s.in_channels = in_channels;
  s.out_channels = out_channels;
  s.groups = groups;
  for (size_t d = 0; d < static_cast<size_t>(dims); ++d) {
    const Window& w = windows[d];
    s.in[d] = w.in;
    s.kernel[d] = w.size;
    s.stride[d] = w.stride;
    s.dilation[d] = w.dilation;
    s.pad_before[d] = w.before;
    s.pad_after[d] = w.after;
  }
  return s;
}

void check_output_gradient(const ConvGeometry& geometry, const PartialShape& out_backprop) {
  const PartialShape expected = geometry.output();
  if (expected.compatible_with(out_backprop)) return;
  throw invalid_argument("out_backprop must have the shape of the output, {}, got {}", expected.str(),
                         out_backprop.str());
}

namespace {

struct Conv2DAttrs {
  std::vector<int64_t> strides = {1, 1, 1, 1};
  bool use_cudnn_on_gpu = true;
  std::string padding = "VALID";
  std::vector<int64_t> explicit_paddings;
  std::string data_format = "NHWC";
  std::vector<int64_t> dilations = {1, 1, 1, 1};
  static constexpr auto fields() {
    using A = Conv2DAttrs;
    return field_list(field("strides", &A::strides, {.required = true}),
                      field("use_cudnn_on_gpu", &A::use_cudnn_on_gpu),
                      field("padding", &A::padding, {.required = true, .texts = "SAME|VALID|EXPLICIT"}),
                      field("explicit_paddings", &A::explicit_paddings),
                      field("data_format", &A::data_format, {.texts = "NHWC|NCHW"}), field("dilations", &A::dilations));
  }
  static constexpr int dims = 2;
  static constexpr bool depthwise = false;
  static constexpr const char* forward = "Conv2D";
  static constexpr const char* backprop_input = "Conv2DBackpropInput";
  static constexpr const char* backprop_filter = "Conv2DBackpropFilter";
  WindowSpec spec() const { return {dims, strides, dilations, padding, &explicit_paddings}; }
};

struct Conv3DAttrs {
  std::vector<int64_t> strides = {1, 1, 1, 1, 1};
  std::string padding = "VALID";
  std::string data_format = "NDHWC";
  std::vector<int64_t> dilations = {1, 1, 1, 1, 1};
  static constexpr auto fields() {
    using A = Conv3DAttrs;
    return field_list(field("strides", &A::strides, {.required = true, .minimum = 5}),
                      field("padding", &A::padding, {.required = true, .texts = "SAME|VALID"}),
                      field("data_format", &A::data_format, {.texts = "NDHWC|NCDHW"}),
                      field("dilations", &A::dilations));
  }
  static constexpr int dims = 3;
  static constexpr bool depthwise = false;
  static constexpr const char* forward = "Conv3D";
  static constexpr const char* backprop_input = "Conv3DBackpropInputV2";
  static constexpr const char* backprop_filter = "Conv3DBackpropFilterV2";
  WindowSpec spec() const { return {dims, strides, dilations, padding}; }
};

void register_conv2d(Registry& r) {
  using A = Conv2DAttrs;
  const Tensor x = Tensor{{{{1.f}, {2.f}, {3.f}}, {{4.f}, {5.f}, {6.f}}}};  // [1, 2, 3, 1]
  const Tensor w = Tensor{{{{1.f}}, {{2.f}}}, {{{-1.f}}, {{0.5f}}}};        // [2, 2, 1, 1]
  const Tensor y = Tensor{{{{3.5f}, {6.f}}}};                               // valid: [1, 1, 2, 1]
  const Tensor grouped_x = Tensor{{{{1.f, 2.f}, {3.f, 4.f}}}};              // [1, 1, 2, 2]
  const Tensor grouped_w = Tensor{{{{10.f, 100.f}}}};                       // [1, 1, 1, 2]: two groups
  define_conv<A>(r, floating + Types<int32_t>{})
      .fused_by("_FusedConv2D")
      .doc(
          "The convolution of [batch, height, width, in_channels] with [height, width, in_channels / groups, "
          "out_channels].")
      .sample({.in = {x, w}, .out = {y}})
      .sample({.in = {x, w}, .out = {Tensor{{{{3.5f}, {6.f}, {-3.f}}, {{14.f}, {17.f}, {6.f}}}}}}, {.padding = "SAME"})
      .sample({.in = {grouped_x, grouped_w}, .out = {Tensor{{{{10.f, 200.f}, {30.f, 400.f}}}}}})
      .sample({.in = {x, w}, .out = {Tensor{{{{0.f}, {-0.5f}, {-3.f}}}}}},
              {.strides = {1, 2, 1, 1}, .padding = "EXPLICIT", .explicit_paddings = {0, 0, 1, 0, 0, 1, 0, 0}})
      .sample({.in = {x, w}, .error = "\"SAME\", \"VALID\", \"EXPLICIT\""}, {.padding = "FULL"})
      .sample({.in = {x, w}, .error = "negative size"}, {.dilations = {1, 4, 1, 1}})
      .sample({.in = {x, grouped_x}, .error = "[1,2,3,1] and [1,1,2,2]"})
      .sample({.in = {x, w}, .error = "NCHW"}, {.data_format = "NCHW"});

  finish_backprop_input<A>(
      r.define<A>(A::backprop_input).type("T", floating + Types<int32_t>{}).in_host("input_sizes", DType::int32))
      .doc("The gradient of Conv2D by its input; also the transposed convolution.")
      .sample({.in = {Tensor{1, 2, 3, 1}, w, Tensor{{{{1.f}, {2.f}}}}},
               .out = {Tensor{{{{1.f}, {4.f}, {4.f}}, {{-1.f}, {-1.5f}, {1.f}}}}}})
      .sample({.in = {Tensor{1, 2, 3, 1}, w, Tensor{{{{1.f}}}}}, .error = "[1,1,2,1], got [1,1,1,1]"})
      .sample({.in = {Tensor{1, 2}, w, Tensor{{{{1.f}}}}}, .error = "must have 4 values"});
  finish_backprop_filter<A>(r.define<A>(A::backprop_filter).in("input", floating))
      .doc("The gradient of Conv2D by its filter.")
      .sample({.in = {x, Tensor{2, 2, 1, 1}, Tensor{{{{1.f}, {2.f}}}}},
               .out = {Tensor{{{{5.f}}, {{8.f}}}, {{{14.f}}, {{17.f}}}}}})
      .sample({.in = {grouped_x, Tensor{1, 1, 1, 2}, Tensor{{{{1.f, 2.f}, {3.f, 4.f}}}}},
               .out = {Tensor{{{{10.f, 20.f}}}}}})
      .sample({.in = {x, Tensor{2, 2, 1, 1}, Tensor{{{{1.f}}}}}, .error = "[1,1,2,1], got [1,1,1,1]"});
}

// A tensor of float32 values in a shape of more dimensions than literals have.
Tensor floats(std::initializer_list<float> values, const Shape& shape) {
  return Tensor::of<float>(std::span(values.begin(), values.size()), shape);
}

void register_conv3d(Registry& r) {
  using A = Conv3DAttrs;
  const Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 2, 2, 1});
  const Tensor w = floats({1, -1, 0.5f, 2}, {2, 1, 2, 1, 1});
  const Tensor y = floats({15.5f, 20.5f}, {1, 1, 2, 1, 1});
  define_conv<A>(r, floating)
      .doc(
          "The convolution of [batch, depth, height, width, in_channels] with [depth, height, width, "
          "in_channels / "
          "groups, out_channels].")
      .sample({.in = {x, w}, .out = {floats({13.5f, 18.5f}, {1, 1, 2, 1, 1})}})
      .sample({.in = {x, w}}, {.strides = {1, 1, 2, 1, 1}, .padding = "SAME"})
      .sample({.in = {x, w}, .error = "attr 'padding' of \"EXPLICIT\""}, {.padding = "EXPLICIT"});
  finish_backprop_input<A>(r.define<A>(A::backprop_input).type("T", floating).in_host("input_sizes", "Tshape"))
      .doc("The gradient of Conv3D by its input; also the transposed convolution.")
      .sample({.in = {Tensor{1, 2, 2, 2, 1}, w, floats({1, 2}, {1, 1, 2, 1, 1})},
               .out = {floats({1, -1, 2, -2, 0.5f, 2, 1, 4}, {1, 2, 2, 2, 1})}})
      .sample({.in = {Tensor{1, 2, 2, 2, 1}, w, y}});
  finish_backprop_filter<A>(r.define<A>(A::backprop_filter).in("input", floating))
      .doc("The gradient of Conv3D by its filter.")
      .sample({.in = {x, Tensor{2, 1, 2, 1, 1}, floats({1, 2}, {1, 1, 2, 1, 1})},
               .out = {floats({7, 10, 19, 22}, {2, 1, 2, 1, 1})}})
      .sample({.in = {x, Tensor{2, 1, 2, 1, 1}, y}});
}

Conv2DAttrs conv2d_attrs(const nn::ConvOptions& o, const char* op) {
  return {.strides = full_list(o.strides, 2, op, "strides"),
          .padding = o.explicit_paddings.empty() || o.padding != "VALID" ? o.padding : "EXPLICIT",
          .explicit_paddings = full_paddings(o.explicit_paddings, 2, op),
          .data_format = o.data_format.empty() ? "NHWC" : o.data_format,
          .dilations = full_list(o.dilations, 2, op, "dilations")};
}
Conv3DAttrs conv3d_attrs(const nn::ConvOptions& o, const char* op) {
  if (!o.explicit_paddings.empty()) throw make_error(Code::unimplemented, "[{}] takes no explicit_paddings", op);
  return {.strides = full_list(o.strides, 3, op, "strides"),
          .padding = o.padding,
          .data_format = o.data_format.empty() ? "NDHWC" : o.data_format,
          .dilations = full_list(o.dilations, 3, op, "dilations")};
}

// The options of a convolution over one dimension, as those of one over two whose first has size 1.
nn::ConvOptions widened(const nn::ConvOptions& o) {
  auto list = [](const std::vector<int64_t>& v, const char* what) {
    const std::vector<int64_t> full = full_list(v, 1, "conv1d", what);
    return std::vector<int64_t>{full[0], 1, full[1], full[2]};
  };
  nn::ConvOptions two = o;
  two.strides = list(o.strides, "strides");
  two.dilations = list(o.dilations, "dilations");
  if (!o.explicit_paddings.empty()) {
    const std::vector<int64_t> p = full_paddings(o.explicit_paddings, 1, "conv1d");
    two.explicit_paddings = {p[0], p[1], 0, 0, p[2], p[3], p[4], p[5]};
  }
  if (!o.data_format.empty() && o.data_format != "NWC") {
    throw make_error(Code::unimplemented, "[conv1d] data_format \"{}\" is not supported: tensors are NWC",
                     o.data_format);
  }
  two.data_format = "NHWC";
  return two;
}

}  // namespace

void register_nn_conv(Registry& r) {
  register_conv2d(r);
  register_conv3d(r);
}

namespace nn {

Tensor conv2d(const Operand& input, const Operand& filters, const ConvOptions& options) {
  return composed(input.where(), [&] { return conv<Conv2DAttrs>(input, filters, conv2d_attrs(options, "Conv2D")); });
}

Tensor conv3d(const Operand& input, const Operand& filters, const ConvOptions& options) {
  return composed(input.where(), [&] { return conv<Conv3DAttrs>(input, filters, conv3d_attrs(options, "Conv3D")); });
}

Tensor conv1d(const Operand& input, const Operand& filters, const ConvOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    const Operand x(expand_dims(input, -3), input.where());
    const Operand w(expand_dims(filters, 0), filters.where());
    return squeeze(conv2d(x, w, widened(options)), {-3});
  });
}

Tensor conv2d_transpose(const Operand& input, const Operand& filters, const ShapeArg& output_shape,
                        const ConvOptions& options) {
  return composed(input.where(), [&] {
    return conv_backprop_input<Conv2DAttrs>(output_shape.tensor(), filters, input,
                                            conv2d_attrs(options, "Conv2DBackpropInput"));
  });
}

Tensor conv3d_transpose(const Operand& input, const Operand& filters, const ShapeArg& output_shape,
                        const ConvOptions& options) {
  return composed(input.where(), [&] {
    return conv_backprop_input<Conv3DAttrs>(output_shape.tensor(), filters, input,
                                            conv3d_attrs(options, "Conv3DBackpropInputV2"));
  });
}

}  // namespace nn
}  // namespace runnel
