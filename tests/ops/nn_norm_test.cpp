#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel {
namespace {

using namespace test;

struct Moments {
  std::vector<double> mean, variance;
};

Moments naive_moments(const std::vector<double>& x, size_t channels) {
  Moments m{std::vector<double>(channels, 0), std::vector<double>(channels, 0)};
  const double rows = static_cast<double>(x.size() / channels);
  for (size_t i = 0; i < x.size(); ++i) m.mean[i % channels] += x[i] / rows;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - m.mean[i % channels];
    m.variance[i % channels] += d * d / rows;
  }
  return m;
}

std::vector<double> naive_normalized(const std::vector<double>& x, const Moments& m, const std::vector<double>& scale,
                                     const std::vector<double>& offset, double epsilon) {
  std::vector<double> y = x;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % scale.size();
    y[i] = (x[i] - m.mean[c]) / std::sqrt(m.variance[c] + epsilon) * scale[c] + offset[c];
  }
  return y;
}

DType statistics(DType dtype) { return dtype == float64 ? float64 : float32; }

TEST(NnBatchNorm, TrainingAgainstTheDefinition) {
  for (int64_t channels : {1, 3, 8, 33, 100}) {
    const Shape shape{5, 9, 7, channels};
    for (DType dtype : {float32, float64, float16, bfloat16}) {
      SCOPED_TRACE(std::to_string(channels) + " channels of " + dtype_name(dtype));
      const Tensor x = random_tensor(shape, dtype, 1, -2, 3);
      const Tensor scale = random_tensor({channels}, statistics(dtype), 2, 0.5, 2);
      const Tensor offset = random_tensor({channels}, statistics(dtype), 3);
      const auto y = nn::fused_batch_norm(x, scale, offset);
      Moments m = naive_moments(values_of(x), static_cast<size_t>(channels));
      expect_close(y.y, naive_normalized(values_of(x), m, values_of(scale), values_of(offset), 0.001), shape,
                   tolerance(dtype));
      expect_close(y.mean, m.mean, {channels}, tolerance(statistics(dtype)));
      for (double& v : m.variance) v *= 315.0 / 314.0;
      expect_close(y.variance, m.variance, {channels}, tolerance(statistics(dtype)));
    }
  }
}

TEST(NnBatchNorm, LargeMeansLoseNoDigits) {
  const Tensor x = random_tensor({64, 32, 32, 3}, float32, 1, 9999, 10001);
  const Moments m = naive_moments(values_of(x), 3);
  const auto y = nn::fused_batch_norm(x, Tensor{1.f, 1.f, 1.f}, Tensor{0.f, 0.f, 0.f});
  const auto variance = values_of(y.variance);
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(variance[c], m.variance[c], 1e-3 * m.variance[c]);
}

TEST(NnBatchNorm, InferenceAndRunningStatistics) {
  const Tensor x = random_tensor({2, 3, 3, 4}, float64, 1);
  const Tensor scale = random_tensor({4}, float64, 2), offset = random_tensor({4}, float64, 3);
  const Tensor mean = random_tensor({4}, float64, 4), variance = random_tensor({4}, float64, 5, 0.5, 2);
  const Moments given{values_of(mean), values_of(variance)};
  const auto out = nn::fused_batch_norm(x, scale, offset,
                                        {.mean = mean, .variance = variance, .epsilon = 0.01, .is_training = false});
  const auto expected = naive_normalized(values_of(x), given, values_of(scale), values_of(offset), 0.01);
  expect_close(out.y, expected, x.shape(), 1e-12);
  expect_close(nn::batch_normalization(x, mean, variance, offset, scale, 0.01), expected, x.shape(), 1e-12);

  const auto moved =
      nn::fused_batch_norm(x, scale, offset, {.mean = mean, .variance = variance, .exponential_avg_factor = 0.25});
  const Moments m = naive_moments(values_of(x), 4);
  std::vector<double> new_mean, new_variance;
  for (size_t c = 0; c < 4; ++c) {
    new_mean.push_back(0.75 * given.mean[c] + 0.25 * m.mean[c]);
    new_variance.push_back(0.75 * given.variance[c] + 0.25 * m.variance[c] * 18 / 17);
  }
  expect_close(moved.mean, new_mean, {4}, 1e-12);
  expect_close(moved.variance, new_variance, {4}, 1e-12);
}

TEST(NnBatchNorm, Gradients) {
  const Tensor x = random_tensor({2, 3, 2, 3}, float64, 1);
  const Tensor scale = random_tensor({3}, float64, 2, 0.5, 2), offset = random_tensor({3}, float64, 3);
  const Tensor mean = random_tensor({3}, float64, 4), variance = random_tensor({3}, float64, 5, 0.5, 2);
  expect_gradients([](const std::vector<Tensor>& t) { return nn::fused_batch_norm(t[0], t[1], t[2]).y; },
                   {x, scale, offset});
  expect_gradients(
      [](const std::vector<Tensor>& t) {
        const auto out = nn::fused_batch_norm(t[0], t[1], t[2]);
        return out.mean * out.variance + reduce_sum(out.y * out.y * out.y, {0, 1, 2});
      },
      {x, scale, offset});
  expect_gradients(
      [](const std::vector<Tensor>& t) {
        return nn::fused_batch_norm(t[0], t[1], t[2], {.mean = t[3], .variance = t[4], .is_training = false}).y;
      },
      {x, scale, offset, mean, variance});
  expect_gradients(
      [](const std::vector<Tensor>& t) { return nn::batch_normalization(t[0], t[1], t[2], t[3], t[4], 0.01); },
      {x, mean, variance, offset, scale});
}

TEST(NnBatchNorm, Float32GradientsAgreeWithFloat64) {
  for (int64_t channels : {3, 40}) {
    const TensorFunction f = [](const std::vector<Tensor>& t) { return nn::fused_batch_norm(t[0], t[1], t[2]).y; };
    auto inputs = [&](DType dtype) {
      return std::vector<Tensor>{random_tensor({8, 17, 13, channels}, dtype, 1), random_tensor({channels}, dtype, 2),
                                 random_tensor({channels}, dtype, 3)};
    };
    const auto narrow = tape_gradients(f, inputs(float32));
    const auto wide = tape_gradients(f, inputs(float64));
    for (size_t i = 0; i < 3; ++i) expect_close(narrow[i], values_of(wide[i]), wide[i].shape(), 1e-3);
  }
}

TEST(NnBatchNorm, SameBitsWithOneAndTwoThreads) {
  const Tensor x = random_tensor({16, 31, 33, 12}, float32, 1);
  const Tensor scale = random_tensor({12}, float32, 2), offset = random_tensor({12}, float32, 3);
  auto all = [&] {
    std::vector<Tensor> out = tape_gradients(
        [](const std::vector<Tensor>& t) { return nn::fused_batch_norm(t[0], t[1], t[2]).y; }, {x, scale, offset});
    const auto y = nn::fused_batch_norm(x, scale, offset);
    out.insert(out.end(), {y.y, y.mean, y.variance});
    return out;
  };
  set_num_threads(1);
  const auto one = all();
  set_num_threads(2);
  const auto two = all();
  for (size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], two[i]);
}

TEST(NnBatchNorm, Errors) {
  const Tensor x = random_tensor({1, 2, 2, 3});
  const Tensor three = random_tensor({3});
  expect_error([&] { nn::fused_batch_norm(x, random_tensor({2}), three); }, Code::invalid_argument,
               "2 values for the 3 channels");
  expect_error([&] { nn::fused_batch_norm(random_tensor({2, 3}), three, three); }, Code::invalid_argument, "rank 4");
  expect_error([&] { nn::fused_batch_norm(x, three, three, {.is_training = false}); }, Code::invalid_argument,
               "0 values for the 3 channels");
  expect_error([&] { nn::fused_batch_norm(x, three, three, {.data_format = "NCHW"}); }, Code::unimplemented, "NCHW");
}

TEST(NnLayerNorm, AgainstTheDefinition) {
  for (DType dtype : {float32, float64}) {
    const Tensor x = random_tensor({6, 10}, dtype, 1, -3, 3);
    const Tensor gamma = random_tensor({10}, dtype, 2), beta = random_tensor({10}, dtype, 3);
    std::vector<double> expected = values_of(x);
    const auto g = values_of(gamma), b = values_of(beta);
    for (size_t r = 0; r < 6; ++r) {
      double mean = 0, variance = 0;
      for (size_t i = 0; i < 10; ++i) mean += expected[r * 10 + i] / 10;
      for (size_t i = 0; i < 10; ++i) variance += std::pow(expected[r * 10 + i] - mean, 2) / 10;
      for (size_t i = 0; i < 10; ++i) {
        double& v = expected[r * 10 + i];
        v = (v - mean) / std::sqrt(variance + 0.01) * g[i] + b[i];
      }
    }
    expect_close(nn::layer_normalization(x, gamma, beta, -1, 0.01), expected, {6, 10}, tolerance(dtype));
  }
  expect_gradients([](const std::vector<Tensor>& t) { return nn::layer_normalization(t[0], t[1], t[2]); },
                   {random_tensor({3, 5}, float64, 1), random_tensor({5}, float64, 2), random_tensor({5}, float64, 3)});
  expect_gradients(
      [](const std::vector<Tensor>& t) {
        return nn::layer_normalization(t[0], {}, {}, {0, 1});
      },
      {random_tensor({3, 5}, float64, 1)});
}

}  // namespace
}  // namespace runnel
