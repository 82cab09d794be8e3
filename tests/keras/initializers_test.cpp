// Initializers: values and distributions, seeds, configurations, names.
#include "runnel/keras/initializers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using runnel::test::expect_close;
using runnel::test::expect_error;
using runnel::test::expect_same_bits;
using runnel::test::values_of;

struct Spread {
  double mean = 0, stddev = 0, lowest = 0, highest = 0;
};

Spread spread_of(const Tensor& t) {
  const std::vector<double> v = values_of(t);
  Spread s{.lowest = v[0], .highest = v[0]};
  double squares = 0;
  for (const double x : v) {
    s.mean += x / static_cast<double>(v.size());
    squares += x * x / static_cast<double>(v.size());
    s.lowest = std::min(s.lowest, x);
    s.highest = std::max(s.highest, x);
  }
  s.stddev = std::sqrt(squares - s.mean * s.mean);
  return s;
}

TEST(Initializers, FixedValues) {
  expect_close(Initializer("zeros")(Shape{2, 2}, float32), {0, 0, 0, 0}, {2, 2}, 0);
  expect_close(Initializer("ones")(Shape{3}, float64), {1, 1, 1}, {3}, 0);
  expect_close(initializers::constant(2.5)(Shape{2, 1}, float32), {2.5, 2.5}, {2, 1}, 0);
  expect_close(initializers::identity(3)(Shape{2, 3}, float32), {3, 0, 0, 0, 3, 0}, {2, 3}, 0);
  EXPECT_EQ(Initializer("ones")(Shape{3}, int64).dtype(), int64);
  EXPECT_EQ(initializers::constant(2)(Shape{}, int32).item<int32_t>(), 2);
  expect_error([] { initializers::identity()(Shape{2, 2, 2}, float32); }, Code::invalid_argument, "[2,2,2]");
}

TEST(Initializers, AreCalledWithAShape) {
  const Initializer ones = "ones";
  expect_close(ones({2, 3}), std::vector<double>(6, 1), {2, 3}, 0);
  EXPECT_EQ(ones({2, 3}).dtype(), float32);
  EXPECT_EQ(ones({4}, float64).dtype(), float64);
  EXPECT_EQ(ones(Shape{}, int32).item<int32_t>(), 1);
  expect_same_bits(initializers::he_normal(3)({3, 4}), initializers::he_normal(3)(Shape{3, 4}, float32));
  const Initializer own = [](const Shape& shape, DType dtype) { return fill(shape, cast(Tensor(7.f), dtype)); };
  expect_close(own({2}), {7, 7}, {2}, 0);
}

TEST(Initializers, PlainDistributions) {
  random::set_seed(5);
  const Shape shape{200, 300};
  const Spread uniform = spread_of(initializers::random_uniform({.minval = -1, .maxval = 3})(shape, float32));
  EXPECT_NEAR(uniform.mean, 1, 0.02);
  EXPECT_NEAR(uniform.stddev, 4 / std::sqrt(12), 0.02);
  EXPECT_GE(uniform.lowest, -1);
  EXPECT_LT(uniform.highest, 3);

  const Spread normal = spread_of(initializers::random_normal({.mean = 2, .stddev = 0.5})(shape, float32));
  EXPECT_NEAR(normal.mean, 2, 0.01);
  EXPECT_NEAR(normal.stddev, 0.5, 0.01);
  EXPECT_GT(normal.highest, 3.2);  // beyond two standard deviations

  const Spread truncated = spread_of(initializers::truncated_normal({.mean = 2, .stddev = 0.5})(shape, float32));
  EXPECT_NEAR(truncated.mean, 2, 0.01);
  EXPECT_NEAR(truncated.stddev, 0.5 * 0.8796, 0.01);
  EXPECT_GE(truncated.lowest, 1);
  EXPECT_LE(truncated.highest, 3);
}

// Each kind on a matrix and on the kernel of a convolution: 3 * 5 cells of 20 channels in and 40 out.
TEST(Initializers, VarianceFollowsTheFans) {
  random::set_seed(6);
  struct Kind {
    const char* name;
    double scale, in, out;
    bool uniform;
  };
  for (const Kind& kind : {Kind{"glorot_uniform", 1, .5, .5, true}, Kind{"glorot_normal", 1, .5, .5, false},
                           Kind{"he_uniform", 2, 1, 0, true}, Kind{"he_normal", 2, 1, 0, false},
                           Kind{"lecun_uniform", 1, 1, 0, true}, Kind{"lecun_normal", 1, 1, 0, false}}) {
    SCOPED_TRACE(kind.name);
    struct Case {
      Shape shape;
      double fan_in, fan_out;
    };
    for (const Case& c : {Case{{150, 250}, 150, 250}, Case{{3, 5, 20, 40}, 300, 600}, Case{{400}, 400, 400}}) {
      const double variance = kind.scale / (kind.in * c.fan_in + kind.out * c.fan_out);
      const Spread s = spread_of(Initializer(kind.name)(c.shape, float32));
      const double slack = c.shape.rank() == 1 ? 0.15 : 0.03;
      EXPECT_NEAR(s.mean, 0, std::sqrt(variance) * slack);
      EXPECT_NEAR(s.stddev, std::sqrt(variance), std::sqrt(variance) * slack);
      const double bound = kind.uniform ? std::sqrt(3 * variance) : 2 * std::sqrt(variance) / .87962566103423978;
      EXPECT_LE(s.highest, bound * (1 + 1e-6));
      EXPECT_GT(s.highest, bound * (c.shape.rank() == 1 ? 0.9 : 0.98));
    }
  }
}

TEST(Initializers, VarianceScalingByItsSettings) {
  random::set_seed(7);
  const Shape shape{100, 400};
  const auto stddev = [&](const initializers::VarianceScalingOptions& o) {
    return spread_of(initializers::variance_scaling(o)(shape, float64)).stddev;
  };
  EXPECT_NEAR(stddev({.scale = 4}), std::sqrt(4. / 100), 0.004);
  EXPECT_NEAR(stddev({.mode = "fan_out", .distribution = "untruncated_normal"}), std::sqrt(1. / 400), 0.001);
  EXPECT_NEAR(stddev({.mode = "fan_avg", .distribution = "uniform"}), std::sqrt(1. / 250), 0.001);
  EXPECT_NEAR(stddev({.distribution = "normal"}), 0.1, 0.002);
  expect_error([] { initializers::variance_scaling({.scale = 0}); }, Code::invalid_argument, "scale");
  expect_error([] { initializers::variance_scaling({.mode = "fan"}); }, Code::invalid_argument, "fan_avg");
  expect_error([] { initializers::variance_scaling({.distribution = "cauchy"}); }, Code::invalid_argument, "cauchy");
}

// The product with its transpose over the shorter side is gain^2 times the identity.
TEST(Initializers, OrthogonalRowsOrColumns) {
  const auto check = [](const Shape& shape, double gain) {
    const Tensor w = reshape(initializers::orthogonal(gain, 3)(shape, float64), {-1, shape[shape.rank() - 1]});
    const bool tall = w.shape()[0] >= w.shape()[1];
    const Tensor product = tall ? matmul(w, w, {.transpose_a = true}) : matmul(w, w, {.transpose_b = true});
    const int64_t n = product.shape()[0];
    expect_close(product, values_of(eye(n, -1, {}, float64) * (gain * gain)), {n, n}, 1e-12);
  };
  check({6, 4}, 1);
  check({4, 6}, 2);
  check({3, 2, 5, 7}, 1);
  EXPECT_EQ(initializers::orthogonal()(Shape{4, 4}, bfloat16).dtype(), bfloat16);
  expect_error([] { Initializer("orthogonal")(Shape{4}, float32); }, Code::invalid_argument, "two dimensions");
}

TEST(Initializers, SeedsFixTheNumbers) {
  const Shape shape{4, 3};
  const auto fixed = {initializers::random_uniform({.seed = 3}),
                      initializers::random_normal({.seed = 3}),
                      initializers::truncated_normal({.seed = 3}),
                      initializers::glorot_uniform(3),
                      initializers::he_normal(3),
                      initializers::orthogonal(1, 3)};
  for (const Initializer& init : fixed) {
    SCOPED_TRACE(init.config().to_json());
    expect_same_bits(init(shape, float32), init(shape, float32));
    expect_same_bits(init(shape, float32), Initializer::from_config(init.config())(shape, float32));
  }
  // TensorFlow's own draw for the seed that Keras makes of 3.
  expect_same_bits(initializers::random_normal({.stddev = 1, .seed = 3})(shape, float32),
                   random::stateless_normal(shape, {3, 0}));
  EXPECT_NE(values_of(initializers::glorot_uniform(3)(shape, float32)),
            values_of(initializers::glorot_uniform(4)(shape, float32)));

  const Initializer open = "glorot_uniform";
  random::set_seed(11);
  const Tensor first = open(shape, float32), second = open(shape, float32);
  EXPECT_NE(values_of(first), values_of(second));
  random::set_seed(11);
  expect_same_bits(open(shape, float32), first);
  expect_same_bits(open(shape, float32), second);
}

TEST(Initializers, ConfigurationsAsKerasWritesThem) {
  const auto json = [](const Initializer& i) { return i.config().to_json(); };
  EXPECT_EQ(json("glorot_uniform"), R"({"class_name":"GlorotUniform","config":{"seed":null}})");
  EXPECT_EQ(json(initializers::he_normal(4)), R"({"class_name":"HeNormal","config":{"seed":4}})");
  EXPECT_EQ(json("zeros"), R"({"class_name":"Zeros","config":{}})");
  EXPECT_EQ(json(initializers::constant(0.5)), R"({"class_name":"Constant","config":{"value":0.5}})");
  EXPECT_EQ(json("random_uniform"),
            R"({"class_name":"RandomUniform","config":{"minval":-0.05,"maxval":0.05,"seed":null}})");
  EXPECT_EQ(json("TruncatedNormal"),
            R"({"class_name":"TruncatedNormal","config":{"mean":0.0,"stddev":0.05,"seed":null}})");
  EXPECT_EQ(
      json("VarianceScaling"),
      R"({"class_name":"VarianceScaling","config":{"scale":1.0,"mode":"fan_in","distribution":"truncated_normal","seed":null}})");
  EXPECT_EQ(json("orthogonal"), R"({"class_name":"Orthogonal","config":{"gain":1.0,"seed":null}})");
  EXPECT_EQ(
      json(Initializer::from_config(Config::from_json(R"({"module":"keras.initializers","class_name":"RandomNormal",
                                      "config":{"stddev":2,"seed":null},"registered_name":null})"))),
      R"({"class_name":"RandomNormal","config":{"mean":0.0,"stddev":2.0,"seed":null}})");
  EXPECT_FALSE(Initializer::from_config(Config()));
}

TEST(Initializers, WhatIsNotThere) {
  expect_error([] { Initializer("glorot"); }, Code::not_found, "no initializer 'glorot'; there are zeros, ones");
  expect_error([] { Initializers::find(Config(3)); }, Code::invalid_argument, "class_name");
  expect_error([] { Initializer("he_normal")(Shape{2, 2}, int32); }, Code::invalid_argument, "[HeNormal]");
  const Initializer own = [](const Shape& shape, DType dtype) { return fill(shape, constant(7, dtype)); };
  expect_close(own(Shape{2}, float32), {7, 7}, {2}, 0);
  expect_error([&] { own.config(); }, Code::failed_precondition, "initializer");
}

}  // namespace
}  // namespace runnel::keras
