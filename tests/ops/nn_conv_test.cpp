#include "tests/ops/nn_reference.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using namespace test;

struct ConvCase {
  std::vector<int64_t> in, size;  // spatial
  int64_t batch, in_channels, out_channels, groups;
  nn::ConvOptions options;
};

std::vector<int64_t> spread(const std::vector<int64_t>& v, size_t dims) {
  return v.size() == 1 ? std::vector<int64_t>(dims, v[0]) : v;
}

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b, const std::vector<int64_t>& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

Tensor run(const ConvCase& c, const Tensor& x, const Tensor& w) {
  switch (c.in.size()) {
    case 1: return nn::conv1d(x, w, c.options);
    case 2: return nn::conv2d(x, w, c.options);
    default: return nn::conv3d(x, w, c.options);
  }
}

Tensor input_of(const ConvCase& c, DType dtype) {
  return random_tensor(Shape(joined({c.batch}, c.in, {c.in_channels})), dtype, 1);
}
Tensor filter_of(const ConvCase& c, DType dtype) {
  return random_tensor(Shape(joined({}, c.size, {c.in_channels / c.groups, c.out_channels})), dtype, 2);
}

const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> cases = {
      {{5, 7}, {3, 3}, 2, 3, 4, 1, {}},
      {{5, 7}, {3, 3}, 2, 3, 4, 1, {.padding = "SAME"}},
      {{8, 9}, {2, 3}, 3, 8, 16, 1, {.strides = {2, 3}, .padding = "SAME"}},
      {{9, 8}, {3, 2}, 1, 2, 5, 1, {.strides = {2}, .dilations = {2, 3}}},
      {{7, 7}, {3, 3}, 2, 2, 2, 1, {.padding = "SAME", .dilations = {2}}},
      {{6, 5}, {3, 2}, 2, 3, 2, 1, {.strides = {1, 2, 1, 1}, .explicit_paddings = {2, 0, 1, 3}}},
      {{6, 5}, {3, 2}, 2, 6, 9, 3, {.padding = "SAME"}},
      {{6, 6}, {3, 3}, 2, 4, 4, 4, {.strides = {2}}},
      {{6, 6}, {1, 1}, 2, 8, 8, 1, {}},
      {{4, 4}, {4, 4}, 2, 1, 3, 1, {}},
      {{3, 3}, {5, 5}, 1, 2, 2, 1, {.padding = "SAME"}},
      {{4, 4}, {3, 3}, 0, 2, 3, 1, {}},
      {{2, 2}, {3, 3}, 2, 2, 3, 1, {}},  // no output cell
      {{11}, {3}, 2, 3, 4, 1, {.strides = {2}, .padding = "SAME"}},
      {{11}, {4}, 2, 3, 4, 1, {.dilations = {2}, .explicit_paddings = {6, 0}}},
      {{4, 5, 6}, {2, 3, 2}, 2, 3, 4, 1, {}},
      {{4, 5, 6}, {2, 3, 2}, 1, 2, 3, 1, {.strides = {1, 2, 2}, .padding = "SAME"}},
      {{5, 5, 5}, {2, 2, 2}, 1, 4, 4, 2, {.dilations = {2, 1, 3}}},
  };
  return cases;
}

TEST(NnConv, AgainstTheDefinition) {
  int number = 0;
  for (const ConvCase& c : conv_cases()) {
    const size_t dims = c.in.size();
    std::vector<int64_t> strides =
        c.options.strides.size() == dims + 2
            ? std::vector<int64_t>(c.options.strides.begin() + 1, c.options.strides.end() - 1)
            : spread(c.options.strides, dims);
    const Slide slide = make_slide(c.in, c.size, strides, spread(c.options.dilations, dims), c.options.padding,
                                   c.options.explicit_paddings);
    for (DType dtype : {float32, float64, float16, bfloat16}) {
      SCOPED_TRACE("case " + std::to_string(number) + " of " + dtype_name(dtype));
      const Tensor x = input_of(c, dtype);
      const Tensor w = filter_of(c, dtype);
      const auto expected =
          naive_conv(slide, c.batch, c.in_channels, c.out_channels, c.groups, values_of(x), values_of(w));
      expect_close(run(c, x, w), expected, slide_output(slide, dims, c.batch, c.out_channels), 2 * tolerance(dtype));
    }
    ++number;
  }
}

TEST(NnConv, GradientsOfEveryCase) {
  int number = 0;
  for (const ConvCase& c : conv_cases()) {
    if (c.batch == 0) continue;
    SCOPED_TRACE("case " + std::to_string(number++));
    expect_gradients([&](const std::vector<Tensor>& t) { return run(c, t[0], t[1]); },
                     {input_of(c, float64), filter_of(c, float64)}, 5);
  }
}

// float32 takes other kernels than float64: their gradients must agree.
TEST(NnConv, Float32GradientsAgreeWithFloat64) {
  for (const ConvCase& c : conv_cases()) {
    const TensorFunction f = [&](const std::vector<Tensor>& t) { return run(c, t[0], t[1]); };
    const auto wide = tape_gradients(f, {input_of(c, float64), filter_of(c, float64)});
    const auto narrow = tape_gradients(f, {input_of(c, float32), filter_of(c, float32)});
    for (size_t i = 0; i < 2; ++i) expect_close(narrow[i], values_of(wide[i]), wide[i].shape(), 1e-4);
  }
}

TEST(NnConv, Int32) {
  const Tensor x = random_tensor({1, 4, 4, 2}, int32, 1, -5, 5);
  const Tensor w = random_tensor({3, 3, 2, 3}, int32, 2, -5, 5);
  const Slide s = make_slide({4, 4}, {3, 3}, {1, 1}, {1, 1}, "SAME", {});
  expect_close(nn::conv2d(x, w, {.padding = "SAME"}), naive_conv(s, 1, 2, 3, 1, values_of(x), values_of(w)),
               {1, 4, 4, 3}, 0);
}

TEST(NnConv, DepthwiseAgainstTheDefinition) {
  const std::vector<nn::ConvOptions> options = {{},
                                                {.padding = "SAME"},
                                                {.strides = {2}, .padding = "SAME"},
                                                {.dilations = {2, 1}},
                                                {.explicit_paddings = {1, 2, 0, 3}}};
  for (const nn::ConvOptions& o : options) {
    const Slide s =
        make_slide({6, 7}, {3, 2}, spread(o.strides, 2), spread(o.dilations, 2), o.padding, o.explicit_paddings);
    for (int64_t multiplier : {1, 3}) {
      for (DType dtype : {float32, float64, float16, bfloat16}) {
        const Tensor x = random_tensor({2, 6, 7, 5}, dtype, 1);
        const Tensor w = random_tensor({3, 2, 5, multiplier}, dtype, 2);
        const auto expected = naive_conv(s, 2, 5, 5 * multiplier, 5, values_of(x), values_of(w));
        expect_close(nn::depthwise_conv2d(x, w, o), expected, slide_output(s, 2, 2, 5 * multiplier),
                     2 * tolerance(dtype));
      }
      expect_gradients([&](const std::vector<Tensor>& t) { return nn::depthwise_conv2d(t[0], t[1], o); },
                       {random_tensor({1, 6, 7, 2}, float64, 1), random_tensor({3, 2, 2, multiplier}, float64, 2)}, 5);
    }
  }
}

TEST(NnConv, SeparableIsDepthwiseThenPointwise) {
  const Tensor x = random_tensor({2, 5, 5, 3}, float64, 1);
  const Tensor d = random_tensor({3, 3, 3, 2}, float64, 2);
  const Tensor p = random_tensor({1, 1, 6, 4}, float64, 3);
  const Slide s = make_slide({5, 5}, {3, 3}, {1, 1}, {1, 1}, "SAME", {});
  const Slide one = make_slide({5, 5}, {1, 1}, {1, 1}, {1, 1}, "VALID", {});
  const auto middle = naive_conv(s, 2, 3, 6, 3, values_of(x), values_of(d));
  expect_close(nn::separable_conv2d(x, d, p, {.padding = "SAME"}), naive_conv(one, 2, 6, 4, 1, middle, values_of(p)),
               {2, 5, 5, 4}, 1e-12);
}

// <conv(x), y> = <x, transpose(y)>
TEST(NnConv, TransposeIsTheAdjoint) {
  for (DType dtype : {float32, float64}) {
    const nn::ConvOptions o{.strides = {2}, .padding = "SAME"};
    const Tensor x = random_tensor({2, 7, 6, 3}, dtype, 1);
    const Tensor w = random_tensor({3, 3, 3, 4}, dtype, 2);
    const Tensor y = random_tensor({2, 4, 3, 4}, dtype, 3);
    auto dot = [](const Tensor& a, const Tensor& b) {
      double sum = 0;
      const auto va = values_of(a), vb = values_of(b);
      for (size_t i = 0; i < va.size(); ++i) sum += va[i] * vb[i];
      return sum;
    };
    const Tensor t = nn::conv2d_transpose(y, w, {2, 7, 6, 3}, o);
    ASSERT_EQ(t.shape(), x.shape());
    EXPECT_NEAR(dot(nn::conv2d(x, w, o), y), dot(x, t), 1e-3);
    const Tensor x3 = random_tensor({1, 4, 3, 4, 2}, dtype, 4);
    const Tensor w3 = random_tensor({2, 2, 3, 2, 3}, dtype, 5);
    const Tensor y3 = random_tensor({1, 2, 2, 2, 3}, dtype, 6);
    EXPECT_NEAR(dot(nn::conv3d(x3, w3, o), y3), dot(x3, nn::conv3d_transpose(y3, w3, {1, 4, 3, 4, 2}, o)), 1e-3);
  }
  expect_gradients(
      [](const std::vector<Tensor>& t) {
        return nn::conv2d_transpose(t[0], t[1], {1, 4, 5, 2}, {.padding = "VALID"});
      },
      {random_tensor({1, 2, 3, 3}, float64, 1), random_tensor({3, 3, 2, 3}, float64, 2)}, 6);
}

TEST(NnConv, SameBitsWithOneAndTwoThreads) {
  const Tensor x = random_tensor({8, 28, 28, 16}, float32, 1);
  const Tensor w = random_tensor({5, 5, 16, 24}, float32, 2);
  const Tensor d = random_tensor({3, 3, 16, 2}, float32, 3);
  auto all = [&] {
    std::vector<Tensor> out{nn::conv2d(x, w, {.padding = "SAME"}), nn::depthwise_conv2d(x, d)};
    for (const Tensor& t : tape_gradients(
             [](const std::vector<Tensor>& t) { return nn::conv2d(t[0], t[1], {.padding = "SAME"}); }, {x, w}))
      out.push_back(t);
    for (const Tensor& t :
         tape_gradients([](const std::vector<Tensor>& t) { return nn::depthwise_conv2d(t[0], t[1]); }, {x, d}))
      out.push_back(t);
    return out;
  };
  set_num_threads(1);
  const auto one = all();
  set_num_threads(2);
  const auto two = all();
  for (size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], two[i]);
}

TEST(NnConv, Errors) {
  const Tensor x = random_tensor({1, 4, 4, 3});
  const Tensor w = random_tensor({3, 3, 3, 2});
  expect_error([&] { nn::conv2d(x, w, {.padding = "FULL"}); }, Code::invalid_argument, "of \"FULL\"");
  expect_error([&] { nn::conv2d(x, random_tensor({3, 3, 2, 2})); }, Code::invalid_argument, "[1,4,4,3] and [3,3,2,2]");
  expect_error([&] { nn::conv2d(x, random_tensor({9, 3, 3, 2})); }, Code::invalid_argument, "negative size");
  expect_error([&] { nn::conv2d(x, random_tensor({3, 3, 3})); }, Code::invalid_argument, "filter must have rank 4");
  expect_error([&] { nn::conv2d(random_tensor({4, 4, 3}), w); }, Code::invalid_argument, "input must have rank 4");
  expect_error([&] { nn::conv2d(x, w, {.strides = {0}}); }, Code::invalid_argument, "strides must be positive");
  expect_error([&] { nn::conv2d(x, w, {.strides = {1, 2, 3}}); }, Code::invalid_argument, "strides must have");
  expect_error(
      [&] {
        nn::conv2d(x, w, {.strides = {2, 1, 1, 1}});
      },
      Code::invalid_argument, "the batch and the channels");
  expect_error(
      [&] {
        nn::conv2d(x, w, {.explicit_paddings = {1, -1, 0, 0}});
      },
      Code::invalid_argument, "none negative");
  expect_error(
      [&] {
        nn::conv2d(x, w, {.padding = "SAME", .explicit_paddings = {1, 1, 0, 0}});
      },
      Code::invalid_argument, "padding is \"SAME\"");
  expect_error([&] { nn::conv2d(x, w, {.data_format = "NCHW"}); }, Code::unimplemented, "NCHW");
  expect_error(
      [&] {
        nn::conv1d(random_tensor({1, 4, 3}), random_tensor({3, 3, 2}), {.data_format = "NCW"});
      },
      Code::unimplemented, "NCW");
  expect_error([&] { nn::conv2d(x, random_tensor({3, 3, 3, 2}, float64)); }, Code::invalid_argument, "[Conv2D]");
  expect_error(
      [&] {
        nn::conv2d(random_tensor({1, 4, 4, 6}), random_tensor({3, 3, 2, 4}));
      },
      Code::invalid_argument, "4 output channels cannot be shared by 3 groups");
  expect_error([&] { nn::conv2d_transpose(x, w, {1, 4, 4, 3}); }, Code::invalid_argument, "out_backprop");
  expect_error(
      [&] {
        nn::depthwise_conv2d(x, random_tensor({3, 3, 2, 1}));
      },
      Code::invalid_argument, "the filter is for 2 channels");
}

}  // namespace
}  // namespace runnel
