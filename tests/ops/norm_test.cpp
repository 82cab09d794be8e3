// Composed reductions, norms, normalising and clipping.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

const float inf = std::numeric_limits<float>::infinity();

void expect_numbers(const Tensor& got, const Shape& shape, const std::vector<double>& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.shape(), shape);
  const auto v = cast(got, float64).to_vector<double>();
  ASSERT_EQ(v.size(), want.size());
  for (size_t i = 0; i < v.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(v[i])) << i;
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(v[i], want[i]) << i;
    } else {
      EXPECT_NEAR(v[i], want[i], tolerance * (1 + std::abs(want[i]))) << i;
    }
  }
}

const Tensor x{{1.f, -2.f, 3.f}, {4.f, 5.f, -6.f}};

TEST(Composed, LogSumExp) {
  expect_numbers(
      reduce_logsumexp(x, 1), {2},
      {std::log(std::exp(1) + std::exp(-2) + std::exp(3)), std::log(std::exp(4) + std::exp(5) + std::exp(-6))});
  expect_numbers(reduce_logsumexp(Tensor{1000.f, 1000.f}), {}, {1000 + std::log(2)});
  expect_numbers(reduce_logsumexp(Tensor{-inf, -inf}, 0, true), {1}, {-inf});
  expect_numbers(reduce_logsumexp(Tensor{inf, 1.f}), {}, {inf});
  expect_numbers(reduce_logsumexp(Tensor::empty(DType::float32, {0})), {}, {-inf});
}

TEST(Composed, VarianceAndDeviation) {
  floating.for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const Tensor t = cast(x, dtype_of<T>);
    const double tolerance = sizeof(T) == 2 ? 0.02 : 1e-5;
    const double m0 = 2.0 / 3;
    const double v0 = ((1 - m0) * (1 - m0) + (-2 - m0) * (-2 - m0) + (3 - m0) * (3 - m0)) / 3;
    const double v1 = (9.0 + 16 + 49) / 3;
    expect_numbers(math::reduce_variance(t, 1), {2}, {v0, v1}, tolerance);
    expect_numbers(math::reduce_std(t, 1, true), {2, 1}, {std::sqrt(v0), std::sqrt(v1)}, tolerance);
  });
  using C = std::complex<float>;
  const Tensor variance = math::reduce_variance(Tensor{C(1, 2), C(3, -2)});
  EXPECT_EQ(variance.dtype(), float32);
  expect_numbers(variance, {}, {5});
  expect_error([] { math::reduce_variance(Tensor{1, 2}); }, Code::invalid_argument, "[Variance]");
}

TEST(Composed, EuclideanNormAndCounts) {
  expect_numbers(math::reduce_euclidean_norm(x, 0), {3}, {std::sqrt(17), std::sqrt(29), std::sqrt(45)});
  EXPECT_EQ(math::reduce_euclidean_norm(Tensor{3, 4}).item<int32_t>(), 5);
  EXPECT_EQ(math::count_nonzero(Tensor{{0, 1, 2}, {0, 0, 3}}).item<int64_t>(), 3);
  EXPECT_EQ(math::count_nonzero(Tensor{{0, 1, 2}, {0, 0, 3}}, 1, true, int32).to_vector<int32_t>(),
            (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(math::count_nonzero(Tensor{"", "a", "b"}).item<int64_t>(), 2);
  EXPECT_EQ(math::count_nonzero(Tensor{true, false}).item<int64_t>(), 1);
}

TEST(Norm, OfVectors) {
  expect_numbers(norm(x), {}, {std::sqrt(91)});
  expect_numbers(norm(x, "euclidean", 1), {2}, {std::sqrt(14), std::sqrt(77)});
  expect_numbers(norm(x, 2, -2, true), {1, 3}, {std::sqrt(17), std::sqrt(29), std::sqrt(45)});
  expect_numbers(norm(x, 1, 1), {2}, {6, 15});
  expect_numbers(norm(x, inf, 0), {3}, {4, 5, 6});
  expect_numbers(norm(x, 3, 1), {2}, {std::cbrt(36), std::cbrt(405)});
  expect_numbers(norm(x, 1), {}, {21});
  using C = std::complex<float>;
  const Tensor c = norm(Tensor{C(3, 4), C(0, 12)});
  EXPECT_EQ(c.dtype(), float32);
  expect_numbers(c, {}, {13});
}

TEST(Norm, OfMatrices) {
  expect_numbers(norm(x, "fro", {0, 1}), {}, {std::sqrt(91)});
  expect_numbers(norm(x, "euclidean", {-2, -1}, true), {1, 1}, {std::sqrt(91)});
  expect_numbers(norm(x, 1, {0, 1}), {}, {9});     // the columns' sums are 5, 7 and 9
  expect_numbers(norm(x, inf, {0, 1}), {}, {15});  // the rows' sums are 6 and 15
  expect_numbers(norm(x, inf, {1, 0}), {}, {9});
  const Tensor diagonal{{3.f, 0.f}, {0.f, -7.f}};
  expect_numbers(norm(diagonal, 2, {0, 1}), {}, {7});
  const Tensor batch = stack({diagonal, diagonal * 2.f});
  expect_numbers(norm(batch, 2, {1, 2}), {2}, {7, 14});
  expect_numbers(norm(batch, 2, {-2, -1}, true), {2, 1, 1}, {7, 14});
}

TEST(Norm, Errors) {
  expect_error([] { norm(x, "nuclear"); }, Code::invalid_argument, "'nuclear'");
  expect_error([] { norm(x, "fro", 1); }, Code::invalid_argument, "two axes");
  expect_error([] { norm(x, -1, 0); }, Code::invalid_argument, "must be positive");
  expect_error([] { norm(x, 3, {0, 1}); }, Code::invalid_argument, "not 3");
  expect_error([] { norm(x, 1, {0, -2}); }, Code::invalid_argument, "named twice");
  expect_error([] { norm(x, 1, 5); }, Code::invalid_argument, "out of range");
}

TEST(Norm, L2Normalize) {
  expect_numbers(math::l2_normalize(x, 1), {2, 3},
                 {1 / std::sqrt(14), -2 / std::sqrt(14), 3 / std::sqrt(14), 4 / std::sqrt(77), 5 / std::sqrt(77),
                  -6 / std::sqrt(77)});
  expect_numbers(math::l2_normalize(Tensor{0.f, 0.f}), {2}, {0, 0});
  expect_numbers(nn::l2_normalize(Tensor{1e-8f, 0.f}, 0, 1e-12), {2}, {1e-2, 0});
}

TEST(Moments, MeanAndVariance) {
  const auto [mean, variance] = nn::moments(x, {0});
  expect_numbers(mean, {3}, {2.5, 1.5, -1.5});
  expect_numbers(variance, {3}, {2.25, 12.25, 20.25});
  const auto kept = nn::moments(cast(x, float16), {0, 1}, true);
  EXPECT_EQ(kept.mean.shape(), (Shape{1, 1}));
  EXPECT_EQ(kept.variance.dtype(), float16);
  expect_numbers(kept.mean, {1, 1}, {5.0 / 6}, 1e-2);
}

TEST(Clip, ByNorm) {
  expect_numbers(clip_by_norm(Tensor{3.f, 4.f}, 1), {2}, {0.6, 0.8});
  expect_numbers(clip_by_norm(Tensor{3.f, 4.f}, 10.f), {2}, {3, 4});
  expect_numbers(clip_by_norm(Tensor{{3.f, 4.f}, {0.3f, 0.4f}}, 1, {1}), {2, 2}, {0.6, 0.8, 0.3, 0.4});
  GradientTape tape;
  const Tensor zero{0.f, 0.f};
  tape.watch(zero);
  expect_numbers(tape.gradient(clip_by_norm(zero, 1), zero), {2}, {1, 1});
}

TEST(Clip, ByGlobalNorm) {
  const std::vector<Tensor> list{Tensor{3.f, 0.f}, Tensor(4.f)};
  const auto [clipped, total] = clip_by_global_norm(list, 1);
  expect_numbers(total, {}, {5});
  expect_numbers(clipped[0], {2}, {0.6, 0});
  expect_numbers(clipped[1], {}, {0.8});
  const auto [same, again] = clip_by_global_norm(list, 10);
  expect_numbers(same[1], {}, {4});
  expect_numbers(linalg::global_norm(list), {}, {5});
  const auto [broken, infinite] = clip_by_global_norm(std::vector<Tensor>{Tensor{inf, 1.f}}, 1);
  expect_numbers(broken[0], {2}, {NAN, NAN});
}

TEST(Clip, ByGlobalNormOfGradients) {
  const IndexedSlices slices{Tensor{{3.f, 0.f}}, Tensor{1}, Tensor{2, 2}};
  const Gradients list{Gradient(slices), Gradient(), Gradient(Tensor(4.f))};
  const auto [clipped, total] = clip_by_global_norm(list, 2.5);
  expect_numbers(total, {}, {5});
  ASSERT_TRUE(clipped[0].is_slices());
  expect_numbers(clipped[0].slices().values, {1, 2}, {1.5, 0});
  EXPECT_FALSE(clipped[1].defined());
  expect_numbers(clipped[2], {}, {2});
  EXPECT_TRUE(clip_by_norm(list[0], 1).is_slices());
}

}  // namespace
}  // namespace runnel
