// Large float32 matrices, which are factored by products: what the factors must satisfy, in double precision.
#include <gtest/gtest.h>

#include "runnel/base/parallel.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel {
namespace {

using test::random_tensor;
using test::values_of;

Tensor wide(const Tensor& t) { return cast(t, float64); }

// The largest difference, relative to the largest number of the expected.
double worst(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(got.shape(), expected.shape());
  const double scale = reduce_max(abs(wide(expected))).item<double>();
  return reduce_max(abs(wide(got) - wide(expected))).item<double>() / scale;
}

// Well conditioned, and not symmetric.
Tensor some_matrix(int64_t n, uint32_t seed = 1) {
  return random_tensor({n, n}, float32, seed) + linalg::diag(fill({n}, 3.f + std::sqrt(static_cast<float>(n))));
}
Tensor identity(int64_t n) { return cast(eye(n), float64); }

constexpr int64_t kSizes[] = {32, 33, 70, 150, 257};

TEST(LargeMatrices, InversesAndSolutions) {
  for (const int64_t n : kSizes) {
    SCOPED_TRACE(n);
    const Tensor a = random_tensor({n, n}, float32, 3);  // pivots matter
    const Tensor inverse = linalg::inv(some_matrix(n));
    EXPECT_LT(worst(matmul(wide(some_matrix(n)), wide(inverse)), identity(n)), 1e-5);
    EXPECT_LT(worst(linalg::inv(some_matrix(n), true), linalg::matrix_transpose(inverse)), 1e-5);
    for (const int64_t m : {int64_t{1}, int64_t{5}, int64_t{200}}) {
      const Tensor x = random_tensor({n, m}, float32, 4);
      const Tensor b = cast(matmul(wide(some_matrix(n)), wide(x)), float32);
      EXPECT_LT(worst(linalg::solve(some_matrix(n), b), x), 1e-4);
      const Tensor adjoint_b = cast(matmul(wide(some_matrix(n)), wide(x), {.transpose_a = true}), float32);
      EXPECT_LT(worst(linalg::solve(some_matrix(n), adjoint_b, true), x), 1e-4);
    }
    const auto [factors, order] = linalg::lu(a);
    const Tensor l = linalg::set_diag(linalg::band_part(wide(factors), -1, 0), ones({n}, float64));
    EXPECT_LE(reduce_max(abs(l)).item<double>(), 1.0);
    EXPECT_LT(worst(matmul(l, linalg::band_part(wide(factors), 0, -1)), gather(wide(a), order)), 1e-5);
    const double det = linalg::slogdet(a).log_abs_det.item<float>();
    EXPECT_NEAR(det, linalg::slogdet(wide(a)).log_abs_det.item<double>(), 1e-3 * std::abs(det));
    EXPECT_EQ(linalg::slogdet(a).sign.item<float>(), linalg::slogdet(wide(a)).sign.item<double>());
  }
}

TEST(LargeMatrices, Triangles) {
  for (const int64_t n : kSizes) {
    for (const bool lower : {false, true}) {
      for (const bool adjoint : {false, true}) {
        SCOPED_TRACE(testing::Message() << n << " lower " << lower << " adjoint " << adjoint);
        const Tensor a = some_matrix(n);
        const Tensor triangle = lower ? linalg::band_part(wide(a), -1, 0) : linalg::band_part(wide(a), 0, -1);
        const Tensor x = random_tensor({n, 90}, float32, 4);
        const Tensor b = cast(matmul(triangle, wide(x), {.transpose_a = adjoint}), float32);
        EXPECT_LT(worst(linalg::triangular_solve(a, b, lower, adjoint), x), 1e-4);
      }
    }
  }
}

TEST(LargeMatrices, Cholesky) {
  for (const int64_t n : kSizes) {
    SCOPED_TRACE(n);
    const Tensor half = wide(some_matrix(n));
    const Tensor a = cast(matmul(half, half, {.transpose_b = true}), float32);
    const Tensor l = linalg::cholesky(linalg::band_part(a, -1, 0) + linalg::band_part(ones({n, n}), 0, 0));
    const Tensor with_ones = wide(a) + identity(n);
    EXPECT_LT(worst(matmul(wide(l), wide(l), {.transpose_b = true}), with_ones), 1e-5);
    EXPECT_EQ(reduce_max(abs(l - linalg::band_part(l, -1, 0))).item<float>(), 0);
    const Tensor none = linalg::cholesky(-a);
    EXPECT_TRUE(std::isnan(none.host<float>()[0]));
    EXPECT_EQ(none.host<float>()[1], 0);
  }
}

TEST(LargeMatrices, QR) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{32, 32}, {100, 40}, {40, 100}, {257, 130}, {130, 257}}) {
    for (const bool full : {false, true}) {
      SCOPED_TRACE(testing::Message() << m << "x" << n << (full ? " full" : ""));
      const Tensor a = random_tensor({m, n}, float32, 5);
      const auto [q, r] = linalg::qr(a, full);
      EXPECT_LT(worst(matmul(wide(q), wide(r)), a), 1e-5);
      EXPECT_LT(worst(matmul(wide(q), wide(q), {.transpose_a = true}), identity(q.dim(1))), 1e-5);
      EXPECT_EQ(reduce_max(abs(r - linalg::band_part(r, 0, -1))).item<float>(), 0);
      // The signs are those of small matrices and of TensorFlow.
      EXPECT_LT(worst(r, linalg::qr(wide(a), full).r), 1e-5);
    }
  }
}

// Matrices that are hard in one way or the other: of low rank, with equal and with tiny values, of zeros.
std::vector<Tensor> spectra(int64_t n) {
  const Tensor low = random_tensor({n, 5}, float32, 7);
  const Tensor scales = pow(Tensor(0.7f), cast(range(n), float32));
  return {random_tensor({n, n}, float32, 6),
          matmul(low, random_tensor({5, n}, float32, 8)),
          cast(identity(n), float32) * 3.f,
          zeros({n, n}),
          random_tensor({n, n}, float32, 9) * scales,
          linalg::diag(concat({zeros({n / 2}), random_tensor({n - n / 2}, float32, 3)}, 0)),
          linalg::band_part(random_tensor({n, n}, float32, 2), 0, 1) * cast(range(n) % 4 > 0, float32)};
}

void expect_svd(const Tensor& a, bool full) {
  const auto [s, u, v] = linalg::svd(a, full);
  const int64_t k = std::min(a.dim(0), a.dim(1));
  const double size = std::max(1e-30, static_cast<double>(reduce_max(abs(a)).item<float>()));
  const Tensor back = matmul(wide(u(all, slice(0, k))) * wide(s), wide(v(all, slice(0, k))), {.transpose_b = true});
  EXPECT_LT(reduce_max(abs(back - wide(a))).item<double>() / size, 2e-5 * std::sqrt(static_cast<double>(k)));
  EXPECT_LT(worst(matmul(wide(u), wide(u), {.transpose_a = true}), identity(u.dim(1))), 1e-4);
  EXPECT_LT(worst(matmul(wide(v), wide(v), {.transpose_a = true}), identity(v.dim(1))), 1e-4);
  const std::vector<double> values = values_of(s);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_GE(values[i], i + 1 < values.size() ? values[i + 1] : 0);
  const std::vector<double> alone = values_of(linalg::svdvals(a)), exact = values_of(linalg::svdvals(wide(a)));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], exact[i], 1e-5 * (exact[0] + 1e-30));
    EXPECT_NEAR(alone[i], exact[i], 1e-5 * (exact[0] + 1e-30));
  }
}

TEST(LargeMatrices, SingularValues) {
  for (const int64_t n : {32, 45, 90}) {
    int which = 0;
    for (const Tensor& a : spectra(n)) {
      SCOPED_TRACE(testing::Message() << n << ", matrix " << which++);
      expect_svd(a, false);
    }
  }
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{80, 33}, {33, 80}}) {
    expect_svd(random_tensor({m, n}, float32, 5), false);
    expect_svd(random_tensor({m, n}, float32, 5), true);
  }
  const Tensor bad = concat({fill({1, 40}, NAN), ones({39, 40})}, 0);
  EXPECT_TRUE(std::isnan(linalg::svdvals(bad).host<float>()[0]));
}

void expect_eigh(const Tensor& half) {
  const Tensor a = half + linalg::matrix_transpose(half);
  const auto [e, v] = linalg::eigh(linalg::band_part(a, -1, 0));
  const double size = std::max(1e-30, static_cast<double>(reduce_max(abs(e)).item<float>()));
  const Tensor rest = matmul(wide(a), wide(v)) - wide(v) * wide(e);
  EXPECT_LT(reduce_max(abs(rest)).item<double>() / size, 2e-5);
  EXPECT_LT(worst(matmul(wide(v), wide(v), {.transpose_a = true}), identity(a.dim(0))), 1e-4);
  const std::vector<double> exact = values_of(linalg::eigvalsh(wide(a))), values = values_of(e);
  const std::vector<double> alone = values_of(linalg::eigvalsh(a));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], exact[i], 1e-5 * size);
    EXPECT_NEAR(alone[i], exact[i], 1e-5 * size);
  }
}

TEST(LargeMatrices, Eigenvectors) {
  for (const int64_t n : {32, 45, 130}) {
    int which = 0;
    for (const Tensor& half : spectra(n)) {
      SCOPED_TRACE(testing::Message() << n << ", matrix " << which++);
      expect_eigh(half);
    }
  }
}

// Their squares are no float32 numbers.
TEST(LargeMatrices, OfTinyAndOfHugeNumbers) {
  const Tensor square = random_tensor({40, 40}, float32, 6), tall = random_tensor({80, 33}, float32, 5);
  for (const float scale : {1e-25f, 1e20f, 1e25f}) {
    SCOPED_TRACE(scale);
    expect_eigh(square * scale);
    expect_svd(square * scale, false);
    expect_svd(tall * scale, true);
    for (const Tensor& a : {square * scale, tall * scale}) {
      const auto [q, r] = linalg::qr(a);
      EXPECT_LT(worst(matmul(wide(q), wide(r)), wide(a)), 1e-5);
      EXPECT_LT(worst(matmul(wide(q), wide(q), {.transpose_a = true}), identity(q.dim(1))), 1e-5);
    }
  }
  // Of both in one matrix.
  const Tensor columns = concat({ones({20}), fill({20}, 1e-22f)}, 0);
  expect_eigh(square * columns * expand_dims(columns, 1));
  expect_svd(square * columns, false);
}

TEST(LargeMatrices, NothingIsFoundOfWhatIsNotFinite) {
  for (const float bad : {NAN, INFINITY}) {
    for (const int64_t n : {8, 40}) {
      SCOPED_TRACE(testing::Message() << bad << " in " << n);
      const Tensor mark = linalg::band_part(ones({n, n}), n - 1, 0) - linalg::band_part(ones({n, n}), n - 2, 0);
      const Tensor below = where(mark > 0.f, fill({n, n}, bad), eye(n));  // the corner at the lower left
      EXPECT_THROW(linalg::eigvalsh(below), Error);
      EXPECT_THROW(linalg::eigh(below), Error);
      EXPECT_TRUE(std::isnan(linalg::svdvals(below).host<float>()[0]));
      // The upper triangle is not read.
      EXPECT_EQ(reduce_max(linalg::eigvalsh(linalg::matrix_transpose(below))).item<float>(), 1);
    }
    const Tensor tall = concat({eye(40), fill({1, 40}, bad)}, 0);
    EXPECT_TRUE(std::isnan(reduce_sum(linalg::qr(tall).r).item<float>()));
  }
}

TEST(LargeMatrices, Batches) {
  const Tensor a = stack({some_matrix(40, 1), some_matrix(40, 2), some_matrix(40, 3)});
  const Tensor inverse = linalg::inv(a);
  for (int64_t i = 0; i < 3; ++i) test::expect_same_bits(inverse[i], linalg::inv(a[i]));
  const Tensor r = linalg::qr(a).r;
  for (int64_t i = 0; i < 3; ++i) test::expect_same_bits(r[i], linalg::qr(a[i]).r);
}

TEST(LargeMatrices, SameBitsWithAnyNumberOfThreads) {
  const int threads = num_threads();
  const auto all = [] {
    const Tensor a = some_matrix(200);
    const Tensor definite = matmul(a, a, {.transpose_b = true});
    return std::vector<Tensor>{linalg::inv(a),   linalg::cholesky(definite), linalg::qr(a).q,
                               linalg::lu(a).lu, linalg::svd(a).u,           linalg::eigh(definite).v};
  };
  set_num_threads(1);
  const std::vector<Tensor> one = all();
  set_num_threads(2);
  const std::vector<Tensor> two = all();
  for (size_t i = 0; i < one.size(); ++i) test::expect_same_bits(two[i], one[i]);
  set_num_threads(threads);
}

TEST(LargeMatrices, SingularOnesAreRefused) {
  const Tensor a = linalg::set_diag(zeros({40, 40}), concat({ones({39}), zeros({1})}, 0));
  test::expect_error([&] { linalg::inv(a); }, Code::invalid_argument, "not invertible");
  test::expect_error([&] { linalg::solve(a, ones({40, 1})); }, Code::invalid_argument, "not invertible");
}

}  // namespace
}  // namespace runnel
