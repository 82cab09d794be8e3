#include "runnel/keras/layers/conv.h"
#include "tests/ops/nn_reference.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

// Random values in all weights, which are named and shaped as stated.
void fill_conv_weights(Layer& layer, const std::vector<std::pair<std::string, Shape>>& expected) {
  const std::vector<Variable> weights = layer.weights();
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(weights[i].name(), layer.name() + "/" + expected[i].first);
    ASSERT_EQ(weights[i].shape(), expected[i].second);
    weights[i].assign(random_tensor(weights[i].shape(), weights[i].dtype(), static_cast<uint32_t>(100 + i)));
  }
}

struct ConvCase {
  std::vector<int64_t> in, kernel, strides, dilation;
  std::string padding;
  int64_t channels, filters, groups;
};

template <class L>
void check_conv(const ConvCase& c) {
  const size_t dims = c.in.size();
  std::vector<int64_t> in_shape{2};
  in_shape.insert(in_shape.end(), c.in.begin(), c.in.end());
  in_shape.push_back(c.channels);
  const Tensor x = random_tensor(Shape(in_shape), DType::float32, 5);
  L layer({.filters = c.filters,
           .kernel_size = c.kernel,
           .strides = c.strides,
           .padding = c.padding,
           .dilation_rate = c.dilation,
           .groups = c.groups,
           .activation = "relu"});
  layer(x);
  std::vector<int64_t> kernel_shape = c.kernel;
  kernel_shape.push_back(c.channels / c.groups);
  kernel_shape.push_back(c.filters);
  fill_conv_weights(layer, {{"kernel", Shape(kernel_shape)}, {"bias", Shape{c.filters}}});

  const bool causal = c.padding == "causal";
  const std::vector<int64_t> causal_padding{c.dilation[0] * (c.kernel[0] - 1), 0};
  const test::Slide s = test::make_slide(c.in, c.kernel, c.strides, c.dilation, c.padding == "same" ? "SAME" : "VALID",
                                         causal ? causal_padding : std::vector<int64_t>{});
  std::vector<double> expected =
      test::naive_conv(s, 2, c.channels, c.filters, c.groups, values_of(x), values_of(layer.kernel));
  const std::vector<double> bias = values_of(layer.bias);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0, expected[i] + bias[i % bias.size()]);
  expect_close(layer(x), expected, test::slide_output(s, dims, 2, c.filters), 1e-5);
}

TEST(KerasConv, AgainstTheDefinition) {
  check_conv<Conv1D>({{9}, {3}, {2}, {1}, "same", 4, 3, 1});
  check_conv<Conv1D>({{9}, {3}, {1}, {2}, "valid", 4, 6, 2});
  check_conv<Conv1D>({{9}, {3}, {1}, {2}, "causal", 2, 3, 1});
  check_conv<Conv2D>({{7, 6}, {3, 2}, {1, 1}, {1, 1}, "valid", 3, 5, 1});
  check_conv<Conv2D>({{7, 6}, {3, 2}, {2, 1}, {1, 1}, "same", 4, 6, 2});
  check_conv<Conv2D>({{7, 8}, {2, 3}, {1, 1}, {2, 3}, "same", 3, 2, 1});
  check_conv<Conv3D>({{4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 1}, "same", 2, 3, 1});
  check_conv<Conv3D>({{4, 5, 6}, {2, 3, 2}, {1, 1, 1}, {1, 1, 1}, "valid", 2, 3, 1});
}

TEST(KerasConv, OneValueCountsForAllDimensions) {
  Conv2D layer({.filters = 4, .kernel_size = {3}, .strides = {2}, .padding = "same"});
  EXPECT_EQ(layer(zeros({1, 8, 6, 3})).shape(), (Shape{1, 4, 3, 4}));
  EXPECT_EQ(layer.kernel.shape(), (Shape{3, 3, 3, 4}));
  EXPECT_EQ(layer.get_config()["kernel_size"].to_json(), "[3,3]");
  EXPECT_EQ(layer.get_config()["strides"].to_json(), "[2,2]");
  EXPECT_EQ(layer.count_params(), 3 * 3 * 3 * 4 + 4);
}

TEST(KerasConv, CausalOutputsDoNotSeeTheFuture) {
  Conv1D layer({.filters = 2, .kernel_size = {3}, .padding = "causal", .dilation_rate = {2}});
  const Tensor x = random_tensor({1, 10, 3});
  const Tensor later = concat({x(all, slice(0, 6)), random_tensor({1, 4, 3}, DType::float32, 9)}, 1);
  const Tensor a = layer(x), b = layer(later);
  EXPECT_EQ(a.shape(), (Shape{1, 10, 2}));
  test::expect_same_bits(a(all, slice(0, 6)), b(all, slice(0, 6)));
  EXPECT_NE(values_of(a(all, slice(6, 10))), values_of(b(all, slice(6, 10))));
}

// Every input cell adds its share of the kernel to the output; `before` cells of the output are cut off at its start.
std::vector<double> naive_transpose(const Tensor& x, const Tensor& w, int64_t stride, int64_t dilation, int64_t before,
                                    const Shape& out) {
  const Shape in = x.shape(), k = w.shape();
  const std::vector<double> xs = values_of(x), ws = values_of(w);
  std::vector<double> y(static_cast<size_t>(out.num_elements()), 0);
  const auto at = [](const Shape& s, int64_t a, int64_t b, int64_t c, int64_t d) {
    return static_cast<size_t>(((a * s[1] + b) * s[2] + c) * s[3] + d);
  };
  for (int64_t n = 0; n < in[0]; ++n) {
    for (int64_t r = 0; r < in[1] * k[0]; ++r) {
      const int64_t row = r / k[0] * stride + r % k[0] * dilation - before;
      for (int64_t c = 0; c < in[2] * k[1]; ++c) {
        const int64_t col = c / k[1] * stride + c % k[1] * dilation - before;
        if (row < 0 || row >= out[1] || col < 0 || col >= out[2]) continue;
        for (int64_t o = 0; o < out[3]; ++o) {
          for (int64_t i = 0; i < in[3]; ++i) {
            y[at(out, n, row, col, o)] += xs[at(in, n, r / k[0], c / k[1], i)] * ws[at(k, r % k[0], c % k[1], o, i)];
          }
        }
      }
    }
  }
  return y;
}

struct TransposeCase {
  int64_t kernel, stride, dilation;
  std::string padding;
  std::vector<int64_t> output_padding;
  int64_t size, before;  // of the output for 4 cells of input, worked out by hand
};

TEST(KerasConv, TransposeAgainstTheDefinition) {
  const TransposeCase cases[] = {
      {3, 2, 1, "valid", {}, 9, 0},   {2, 3, 1, "valid", {}, 12, 0}, {3, 2, 1, "same", {}, 8, 0},
      {5, 2, 1, "same", {}, 8, 1},    {3, 2, 1, "same", {0}, 7, 1},  {3, 2, 1, "same", {1}, 8, 0},
      {3, 2, 1, "valid", {1}, 10, 0}, {3, 1, 2, "valid", {}, 8, 0},
  };
  for (const TransposeCase& c : cases) {
    SCOPED_TRACE(c.padding + " " + std::to_string(c.kernel) + " " + std::to_string(c.size));
    Conv2DTranspose layer({.filters = 3,
                           .kernel_size = {c.kernel},
                           .strides = {c.stride},
                           .padding = c.padding,
                           .output_padding = c.output_padding,
                           .dilation_rate = {c.dilation},
                           .use_bias = false});
    const Tensor x = random_tensor({2, 4, 4, 2});
    layer(x);
    fill_conv_weights(layer, {{"kernel", Shape{c.kernel, c.kernel, 3, 2}}});
    const Shape out{2, c.size, c.size, 3};
    expect_close(layer(x), naive_transpose(x, layer.kernel, c.stride, c.dilation, c.before, out), out, 1e-5);
    // The same where a trace does not know the sizes.
    EXPECT_EQ(layer.compute_output_shape({-1, 4, -1, 2}), (PartialShape{-1, c.size, -1, 3}));
    auto traced = function([&](Tensor t) { return layer(t); },
                           {.input_signature = {TensorSpec{PartialShape{-1, -1, -1, 2}, DType::float32, "x"}}});
    test::expect_same_bits(traced(x), layer(x));
  }
}

TEST(KerasConv, DepthwiseAndSeparableAgainstTheDefinition) {
  const Tensor x = random_tensor({2, 6, 5, 3});
  const test::Slide s = test::make_slide({6, 5}, {3, 2}, {2, 2}, {1, 1}, "SAME", {});
  DepthwiseConv2D depthwise({.kernel_size = {3, 2}, .strides = {2}, .padding = "same", .depth_multiplier = 2});
  depthwise(x);
  fill_conv_weights(depthwise, {{"depthwise_kernel", Shape{3, 2, 3, 2}}, {"bias", Shape{6}}});
  // [height, width, channel, multiplier] lies in memory as [cell][1][outputs] of a convolution with a group per
  // channel.
  std::vector<double> expected = test::naive_conv(s, 2, 3, 6, 3, values_of(x), values_of(depthwise.depthwise_kernel));
  const std::vector<double> without_bias = expected;
  const std::vector<double> bias = values_of(depthwise.bias);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % 6];
  expect_close(depthwise(x), expected, test::slide_output(s, 2, 2, 6), 1e-5);

  SeparableConv2D separable(
      {.filters = 4, .kernel_size = {3, 2}, .strides = {2}, .padding = "same", .depth_multiplier = 2});
  separable(x);
  fill_conv_weights(
      separable,
      {{"depthwise_kernel", Shape{3, 2, 3, 2}}, {"pointwise_kernel", Shape{1, 1, 6, 4}}, {"bias", Shape{4}}});
  const std::vector<double> mix = values_of(separable.pointwise_kernel), shift = values_of(separable.bias);
  std::vector<double> mixed;
  for (size_t pixel = 0; pixel < without_bias.size() / 6; ++pixel) {
    for (size_t o = 0; o < 4; ++o) {
      double sum = shift[o];
      for (size_t i = 0; i < 6; ++i) sum += without_bias[pixel * 6 + i] * mix[i * 4 + o];
      mixed.push_back(sum);
    }
  }
  expect_close(separable(x), mixed, test::slide_output(s, 2, 2, 4), 1e-5);
}

TEST(KerasConv, Gradients) {
  Conv2D conv({.filters = 2, .kernel_size = {3}, .padding = "same", .activation = "tanh", .dtype = "float64"});
  Conv2DTranspose back({.filters = 2, .kernel_size = {3}, .strides = {2}, .activation = "tanh", .dtype = "float64"});
  SeparableConv2D separable({.filters = 2, .kernel_size = {2}, .dtype = "float64"});
  for (Layer* layer : {static_cast<Layer*>(&conv), static_cast<Layer*>(&back), static_cast<Layer*>(&separable)}) {
    SCOPED_TRACE(layer->name());
    const Tensor x = random_tensor({1, 4, 3, 2}, DType::float64);
    (*layer)(x);
    std::vector<Tensor> at = layer->get_weights();
    at.push_back(x);
    // The weights are variables: the function moves them to where it is asked for.
    const std::vector<Variable> weights = layer->trainable_weights();
    const auto loss = [&](const std::vector<Tensor>& values) {
      for (size_t i = 0; i < weights.size(); ++i) weights[i].assign(values[i]);
      return reduce_sum(square((*layer)(values.back())));
    };
    GradientTape tape;
    const Tensor y = loss(at);
    const Gradients gradients = tape.gradient(y, weights);
    for (size_t k = 0; k < weights.size(); ++k) {
      const std::vector<double> base = values_of(at[k]), got = values_of(gradients[k].value());
      for (size_t i = 0; i < base.size(); i += 1 + base.size() / 8) {
        const auto moved = [&](double by) {
          std::vector<double> v = base;
          v[i] += by;
          std::vector<Tensor> values = at;
          values[k] = test::tensor_of(v, at[k].shape(), DType::float64);
          return loss(values).item<double>();
        };
        EXPECT_NEAR(got[i], (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-6) << weights[k].name() << " " << i;
      }
    }
  }
}

TEST(KerasConv, DtypePolicies) {
  Conv2D layer({.filters = 2, .kernel_size = {2}, .dtype = "mixed_bfloat16"});
  const Tensor y = layer(random_tensor({1, 3, 3, 2}));
  EXPECT_EQ(y.dtype(), DType::bfloat16);
  EXPECT_EQ(layer.kernel.dtype(), DType::float32);
}

TEST(KerasConv, SettingsSurviveConfigurations) {
  const auto check = [](const Layer& layer) {
    const LayerPtr again = layer_from_config(Config::from_json(layer_to_config(layer).to_json()));
    EXPECT_EQ(again->get_config().to_json(), layer.get_config().to_json());
    EXPECT_EQ(again->class_name(), layer.class_name());
  };
  check(Conv1D({.filters = 3, .kernel_size = {5}, .padding = "causal", .activation = "relu", .name = "a"}));
  check(Conv2D({.filters = 4, .kernel_size = {3, 5}, .groups = 2, .kernel_regularizer = "l2", .name = "b"}));
  check(Conv3D({.filters = 4, .kernel_size = {3}, .use_bias = false, .kernel_initializer = "he_normal"}));
  check(Conv2DTranspose({.filters = 4, .kernel_size = {3}, .strides = {2}}));
  check(Conv2DTranspose({.filters = 4, .kernel_size = {3}, .strides = {2}, .output_padding = {1, 0}}));
  check(DepthwiseConv2D({.kernel_size = {3}, .depth_multiplier = 2}));
  check(SeparableConv2D({.filters = 4, .kernel_size = {3}, .depthwise_constraint = "non_neg", .trainable = false}));
  const Config config = Conv2DTranspose({.filters = 4, .kernel_size = {3}}).get_config();
  EXPECT_TRUE(config["output_padding"].is_null());
  EXPECT_EQ(config["activation"].as_text(), "linear");
  EXPECT_EQ(config["groups"].as_int(), 1);
}

TEST(KerasConv, Errors) {
  const Tensor x = zeros({1, 5, 5, 4});
  const auto expect_wrong = [&](const ConvOptions& options, const std::string& text) {
    expect_error(
        [&] {
          Conv2D layer(options);
          layer(x);
        },
        Code::invalid_argument, text);
  };
  expect_wrong({.kernel_size = {3}}, "[Conv2D] filters must be positive, got 0");
  expect_wrong({.filters = 2}, "[Conv2D] kernel_size must be 1 or 2 positive numbers, got []");
  expect_wrong({.filters = 2, .kernel_size = {3, 3, 3}}, "got [3,3,3]");
  expect_wrong({.filters = 2, .kernel_size = {3}, .strides = {0}}, "strides must be 1 or 2 positive numbers, got [0]");
  expect_wrong({.filters = 2, .kernel_size = {3}, .padding = "causal"}, "padding must be");
  expect_wrong({.filters = 3, .kernel_size = {3}, .groups = 2}, "3 filters cannot be shared by 2 groups");
  expect_wrong({.filters = 3, .kernel_size = {3}, .groups = 3}, "the 4 channels of an input [1,5,5,4]");
  expect_wrong({.filters = 3, .kernel_size = {7}}, "in layer 'conv2d");
  expect_error(
      [&] {
        Conv2D layer({.filters = 2, .kernel_size = {3}, .data_format = "channels_first"});
        layer(x);
      },
      Code::unimplemented, "channels_first");
  expect_error(
      [&] {
        Conv2D layer({.filters = 2, .kernel_size = {3}});
        layer(zeros({5, 5, 4}));
      },
      Code::invalid_argument, "expected 4 dimensions, found shape [5,5,4]");
  Conv2D built({.filters = 2, .kernel_size = {3}});
  built(x);
  expect_error([&] { built(zeros({1, 5, 5, 3})); }, Code::invalid_argument, "size 4 at axis -1");
  expect_error(
      [&] {
        Conv2DTranspose layer({.filters = 2, .kernel_size = {3}, .strides = {2}, .output_padding = {2}});
        layer(x);
      },
      Code::invalid_argument, "output_padding must be 1 or 2 numbers from 0 to below the strides [2,2], got [2,2]");
  expect_error(
      [&] {
        DepthwiseConv2D layer({.kernel_size = {3}, .depth_multiplier = 0});
        layer(x);
      },
      Code::invalid_argument, "depth_multiplier must be positive");
}

}  // namespace
}  // namespace runnel::keras
