#include <cmath>

#include "tests/ops/nn_reference.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using namespace test;

struct PoolCase {
  std::vector<int64_t> in;
  int64_t batch, channels;
  nn::PoolOptions options;
};

std::vector<int64_t> spread_window(const std::vector<int64_t>& v, size_t dims) {
  return v.size() == 1 ? std::vector<int64_t>(dims, v[0]) : v;
}

const std::vector<PoolCase>& pool_cases() {
  static const std::vector<PoolCase> cases = {
      {{6, 8}, 2, 3, {}},
      {{7, 5}, 2, 17, {.padding = "SAME"}},
      {{7, 5}, 1, 4, {.ksize = {3, 2}, .strides = {2, 1}, .padding = "SAME"}},
      {{7, 5}, 1, 4, {.ksize = {3}, .strides = {1}}},
      {{5, 5}, 2, 2, {.ksize = {2}, .strides = {3}}},
      {{5, 5}, 0, 2, {}},
      {{9}, 2, 3, {.ksize = {3}, .strides = {2}, .padding = "SAME"}},
      {{9}, 2, 3, {}},
      {{4, 5, 6}, 2, 3, {}},
      {{4, 5, 3}, 1, 9, {.ksize = {2, 3, 2}, .strides = {1, 2, 1}, .padding = "SAME"}},
  };
  return cases;
}

Tensor input_of(const PoolCase& c, DType dtype) {
  std::vector<int64_t> shape{c.batch};
  shape.insert(shape.end(), c.in.begin(), c.in.end());
  shape.push_back(c.channels);
  return random_tensor(Shape(shape), dtype, 1, -9, 9);
}

Slide slide_of(const PoolCase& c) {
  const size_t dims = c.in.size();
  const auto size = spread_window(c.options.ksize, dims);
  const auto strides = c.options.strides.empty() ? size : spread_window(c.options.strides, dims);
  return make_slide(c.in, size, strides, std::vector<int64_t>(dims, 1), c.options.padding, c.options.explicit_paddings);
}

TEST(NnPool, AgainstTheDefinition) {
  int number = 0;
  for (const PoolCase& c : pool_cases()) {
    const Slide s = slide_of(c);
    for (DType dtype : {float32, float64, float16, bfloat16}) {
      SCOPED_TRACE("case " + std::to_string(number) + " of " + dtype_name(dtype));
      const Tensor x = input_of(c, dtype);
      const Shape shape = slide_output(s, c.in.size(), c.batch, c.channels);
      expect_close(nn::max_pool(x, c.options), naive_pool(s, c.batch, c.channels, values_of(x), false), shape, 0);
      expect_close(nn::avg_pool(x, c.options), naive_pool(s, c.batch, c.channels, values_of(x), true), shape,
                   tolerance(dtype));
    }
    ++number;
  }
}

TEST(NnPool, Gradients) {
  for (const PoolCase& c : pool_cases()) {
    if (c.batch == 0) continue;
    const Tensor x = input_of(c, float64);
    expect_gradients([&](const std::vector<Tensor>& t) { return nn::max_pool(t[0], c.options); }, {x}, 10);
    expect_gradients([&](const std::vector<Tensor>& t) { return nn::avg_pool(t[0], c.options); }, {x}, 10);
    // A product makes the second derivative more than zero.
    expect_gradients([&](const std::vector<Tensor>& t) { return nn::max_pool(t[0] * t[0], c.options); }, {x}, 10, 1e-5);
  }
}

TEST(NnPool, Float32GradientsAgreeWithFloat64) {
  for (const PoolCase& c : pool_cases()) {
    // Values that both types hold exactly, so that the same cells are the largest.
    const Tensor x = tensor_of(values_of(input_of(c, bfloat16)), input_of(c, bfloat16).shape(), float32);
    const Tensor wide = tensor_of(values_of(x), x.shape(), float64);
    for (bool average : {false, true}) {
      const TensorFunction f = [&](const std::vector<Tensor>& t) {
        return average ? nn::avg_pool(t[0], c.options) : nn::max_pool(t[0], c.options);
      };
      expect_close(tape_gradients(f, {x})[0], values_of(tape_gradients(f, {wide})[0]), x.shape(), 1e-5);
    }
  }
}

TEST(NnPool, ExplicitPadding) {
  const Tensor x = random_tensor({2, 5, 6, 3}, float32, 4);
  const nn::PoolOptions o{.ksize = {3}, .strides = {2}, .explicit_paddings = {1, 2, 0, 1}};
  const Slide s = make_slide({5, 6}, {3, 3}, {2, 2}, {1, 1}, "", {1, 2, 0, 1});
  expect_close(nn::max_pool(x, o), naive_pool(s, 2, 3, values_of(x), false), slide_output(s, 2, 2, 3), 0);
  expect_error([&] { nn::avg_pool(x, o); }, Code::unimplemented, "explicit_paddings");
}

TEST(NnPool, IntegersAndNan) {
  const Tensor x = random_tensor({1, 4, 4, 2}, int32, 1, -50, 50);
  const Slide s = make_slide({4, 4}, {2, 2}, {2, 2}, {1, 1}, "VALID", {});
  expect_close(nn::max_pool(x), naive_pool(s, 1, 2, values_of(x), false), {1, 2, 2, 2}, 0);
  const Tensor y = nn::max_pool(reshape(Tensor{1.f, std::nanf(""), 3.f, 4.f}, {1, 2, 2, 1}));
  EXPECT_TRUE(std::isnan(y.item<float>()));
}

TEST(NnPool, TiesGoToTheFirstCell) {
  const Tensor x = reshape(Tensor{2.f, 2.f, 2.f, 2.f}, {1, 2, 2, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor d = tape.gradient(nn::max_pool(x), x).value();
  EXPECT_EQ(d.to_vector<float>(), (std::vector<float>{1.f, 0.f, 0.f, 0.f}));
}

TEST(NnPool, SameBitsWithOneAndTwoThreads) {
  const Tensor x = random_tensor({16, 28, 28, 32}, float32, 1);
  const nn::PoolOptions o{.ksize = {3}, .strides = {2}, .padding = "SAME"};
  auto all = [&] {
    std::vector<Tensor> out{nn::max_pool(x, o), nn::avg_pool(x, o)};
    out.push_back(tape_gradients([&](const std::vector<Tensor>& t) { return nn::max_pool(t[0], o); }, {x})[0]);
    out.push_back(tape_gradients([&](const std::vector<Tensor>& t) { return nn::avg_pool(t[0], o); }, {x})[0]);
    return out;
  };
  set_num_threads(1);
  const auto one = all();
  set_num_threads(2);
  const auto two = all();
  for (size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], two[i]);
}

TEST(NnPool, Errors) {
  const Tensor x = random_tensor({1, 4, 4, 3});
  expect_error([&] { nn::max_pool(x, {.padding = "same"}); }, Code::invalid_argument, "of \"same\"");
  expect_error([&] { nn::max_pool(x, {.ksize = {9}, .strides = {1}}); }, Code::invalid_argument, "negative size");
  expect_error([&] { nn::max_pool(x, {.ksize = {0}}); }, Code::invalid_argument, "positive");
  expect_error([&] { nn::avg_pool(x, {.ksize = {2, 2, 2}}); }, Code::invalid_argument, "ksize must have");
  expect_error([&] { nn::max_pool(random_tensor({4, 4})); }, Code::invalid_argument, "rank 3, 4 or 5, got [4,4]");
  expect_error([&] { nn::avg_pool(x, {.data_format = "NCHW"}); }, Code::unimplemented, "NCHW");
  expect_error(
      [&] {
        nn::max_pool(x, {.ksize = {2}, .explicit_paddings = {2, 0, 0, 0}});
      },
      Code::invalid_argument, "without any input");
}

}  // namespace
}  // namespace runnel
