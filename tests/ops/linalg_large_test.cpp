// Large float32 and float64 matrices, which are factored by products: what the factors must satisfy, in double
// precision, and what small matrices would give, by way of complex ones, which are factored otherwise.
#include <gtest/gtest.h>

#include "runnel/base/parallel.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel {
namespace {

using test::random_tensor;
using test::values_of;

class LargeMatrices : public testing::TestWithParam<DType> {
 protected:
  // A bound of errors that is given for float32.
  static double bound(double of_float32) { return GetParam() == float64 ? of_float32 * 1e-8 : of_float32; }
  static Tensor some(const Shape& shape, uint32_t seed) { return random_tensor(shape, GetParam(), seed); }
  static Tensor narrow(const Tensor& t) { return cast(t, GetParam()); }
  // Well conditioned, and not symmetric.
  static Tensor some_matrix(int64_t n, uint32_t seed = 1) {
    return some({n, n}, seed) + narrow(linalg::diag(fill({n}, 3.f + std::sqrt(static_cast<float>(n)))));
  }
  static std::vector<Tensor> spectra(int64_t n);
  static void expect_svd(const Tensor& a, bool full);
  static void expect_eigh(const Tensor& half);
};
INSTANTIATE_TEST_SUITE_P(Of, LargeMatrices, testing::Values(float32, float64),
                         [](const auto& info) { return dtype_name(info.param); });

Tensor wide(const Tensor& t) { return cast(t, float64); }
Tensor otherwise(const Tensor& t) { return cast(t, complex128); }
double number(const Tensor& t) { return wide(t).item<double>(); }
bool is_nan(const Tensor& t) { return std::isnan(values_of(t)[0]); }

// The largest difference, relative to the largest number of the expected.
double worst(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(got.shape(), expected.shape());
  const double scale = reduce_max(abs(wide(expected))).item<double>();
  return reduce_max(abs(wide(got) - wide(expected))).item<double>() / scale;
}

Tensor identity(int64_t n) { return cast(eye(n), float64); }

constexpr int64_t kSizes[] = {32, 33, 70, 150, 257};

TEST_P(LargeMatrices, InversesAndSolutions) {
  for (const int64_t n : kSizes) {
    SCOPED_TRACE(n);
    const Tensor a = some({n, n}, 3);  // pivots matter
    const Tensor inverse = linalg::inv(some_matrix(n));
    EXPECT_LT(worst(matmul(wide(some_matrix(n)), wide(inverse)), identity(n)), bound(1e-5));
    EXPECT_LT(worst(linalg::inv(some_matrix(n), true), linalg::matrix_transpose(inverse)), bound(1e-5));
    for (const int64_t m : {int64_t{1}, int64_t{5}, int64_t{200}}) {
      const Tensor x = some({n, m}, 4);
      const Tensor b = narrow(matmul(wide(some_matrix(n)), wide(x)));
      EXPECT_LT(worst(linalg::solve(some_matrix(n), b), x), bound(1e-4));
      const Tensor adjoint_b = narrow(matmul(wide(some_matrix(n)), wide(x), {.transpose_a = true}));
      EXPECT_LT(worst(linalg::solve(some_matrix(n), adjoint_b, true), x), bound(1e-4));
    }
    const auto [factors, order] = linalg::lu(a);
    const Tensor l = linalg::set_diag(linalg::band_part(wide(factors), -1, 0), ones({n}, float64));
    EXPECT_LE(reduce_max(abs(l)).item<double>(), 1.0);
    EXPECT_LT(worst(matmul(l, linalg::band_part(wide(factors), 0, -1)), gather(wide(a), order)), bound(1e-5));
    const auto det = linalg::slogdet(a), exact = linalg::slogdet(otherwise(a));
    const double log_abs = number(real(exact.log_abs_det));
    EXPECT_NEAR(number(det.log_abs_det), log_abs, bound(1e-3) * std::abs(log_abs));
    EXPECT_NEAR(number(det.sign), number(real(exact.sign)), 1e-6);
  }
}

TEST_P(LargeMatrices, Triangles) {
  for (const int64_t n : kSizes) {
    for (const bool lower : {false, true}) {
      for (const bool adjoint : {false, true}) {
        SCOPED_TRACE(testing::Message() << n << " lower " << lower << " adjoint " << adjoint);
        const Tensor a = some_matrix(n);
        const Tensor triangle = lower ? linalg::band_part(wide(a), -1, 0) : linalg::band_part(wide(a), 0, -1);
        const Tensor x = some({n, 90}, 4);
        const Tensor b = narrow(matmul(triangle, wide(x), {.transpose_a = adjoint}));
        EXPECT_LT(worst(linalg::triangular_solve(a, b, lower, adjoint), x), bound(1e-4));
      }
    }
  }
}

TEST_P(LargeMatrices, Cholesky) {
  for (const int64_t n : kSizes) {
    SCOPED_TRACE(n);
    const Tensor half = wide(some_matrix(n));
    const Tensor a = narrow(matmul(half, half, {.transpose_b = true}));
    const Tensor l = linalg::cholesky(linalg::band_part(a, -1, 0) + narrow(identity(n)));
    const Tensor with_ones = wide(a) + identity(n);
    EXPECT_LT(worst(matmul(wide(l), wide(l), {.transpose_b = true}), with_ones), bound(1e-5));
    EXPECT_EQ(number(reduce_max(abs(l - linalg::band_part(l, -1, 0)))), 0);
    const Tensor none = linalg::cholesky(-a);
    EXPECT_TRUE(is_nan(none));
    EXPECT_EQ(values_of(none)[1], 0);
  }
}

TEST_P(LargeMatrices, QR) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{32, 32}, {100, 40}, {40, 100}, {257, 130}, {130, 257}}) {
    for (const bool full : {false, true}) {
      SCOPED_TRACE(testing::Message() << m << "x" << n << (full ? " full" : ""));
      const Tensor a = some({m, n}, 5);
      const auto [q, r] = linalg::qr(a, full);
      EXPECT_LT(worst(matmul(wide(q), wide(r)), a), bound(1e-5));
      EXPECT_LT(worst(matmul(wide(q), wide(q), {.transpose_a = true}), identity(q.dim(1))), bound(1e-5));
      EXPECT_EQ(number(reduce_max(abs(r - linalg::band_part(r, 0, -1)))), 0);
      // The signs are those of small matrices and of TensorFlow.
      EXPECT_LT(worst(r, real(linalg::qr(otherwise(a), full).r)), bound(1e-5));
    }
  }
}

// Matrices that are hard in one way or the other: of low rank, with equal and with tiny values, of zeros.
std::vector<Tensor> LargeMatrices::spectra(int64_t n) {
  const Tensor low = some({n, 5}, 7);
  const Tensor scales = pow(narrow(Tensor(0.7f)), narrow(range(n)));
  return {some({n, n}, 6),
          matmul(low, some({5, n}, 8)),
          narrow(identity(n)) * 3.f,
          zeros({n, n}, GetParam()),
          some({n, n}, 9) * scales,
          linalg::diag(concat({zeros({n / 2}, GetParam()), some({n - n / 2}, 3)}, 0)),
          linalg::band_part(some({n, n}, 2), 0, 1) * narrow(range(n) % 4 > 0)};
}

void LargeMatrices::expect_svd(const Tensor& a, bool full) {
  const auto [s, u, v] = linalg::svd(a, full);
  const int64_t k = std::min(a.dim(0), a.dim(1));
  const double size = std::max(1e-300, number(reduce_max(abs(a))));
  const Tensor back = matmul(wide(u(all, slice(0, k))) * wide(s), wide(v(all, slice(0, k))), {.transpose_b = true});
  EXPECT_LT(reduce_max(abs(back - wide(a))).item<double>() / size, bound(2e-5) * std::sqrt(static_cast<double>(k)));
  EXPECT_LT(worst(matmul(wide(u), wide(u), {.transpose_a = true}), identity(u.dim(1))), bound(1e-4));
  EXPECT_LT(worst(matmul(wide(v), wide(v), {.transpose_a = true}), identity(v.dim(1))), bound(1e-4));
  const std::vector<double> values = values_of(s);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_GE(values[i], i + 1 < values.size() ? values[i + 1] : 0);
  // Of numbers near 1, which the other way wants.
  const std::vector<double> exact = values_of(linalg::svdvals(otherwise(wide(a) / size)) * size);
  const std::vector<double> alone = values_of(linalg::svdvals(a));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], exact[i], bound(1e-5) * (exact[0] + 1e-300));
    EXPECT_NEAR(alone[i], exact[i], bound(1e-5) * (exact[0] + 1e-300));
  }
}

TEST_P(LargeMatrices, SingularValues) {
  for (const int64_t n : {32, 45, 90}) {
    int which = 0;
    for (const Tensor& a : spectra(n)) {
      SCOPED_TRACE(testing::Message() << n << ", matrix " << which++);
      expect_svd(a, false);
    }
  }
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{80, 33}, {33, 80}}) {
    expect_svd(some({m, n}, 5), false);
    expect_svd(some({m, n}, 5), true);
  }
  const Tensor bad = narrow(concat({fill({1, 40}, NAN), ones({39, 40})}, 0));
  EXPECT_TRUE(is_nan(linalg::svdvals(bad)));
}

void LargeMatrices::expect_eigh(const Tensor& half) {
  const Tensor a = half + linalg::matrix_transpose(half);
  const auto [e, v] = linalg::eigh(linalg::band_part(a, -1, 0));
  const double size = std::max(1e-300, number(reduce_max(abs(e))));
  const Tensor rest = matmul(wide(a), wide(v)) - wide(v) * wide(e);
  EXPECT_LT(reduce_max(abs(rest)).item<double>() / size, bound(2e-5));
  EXPECT_LT(worst(matmul(wide(v), wide(v), {.transpose_a = true}), identity(a.dim(0))), bound(1e-4));
  const std::vector<double> exact = values_of(real(linalg::eigvalsh(otherwise(wide(a) / size))) * size),
                            values = values_of(e);
  const std::vector<double> alone = values_of(linalg::eigvalsh(a));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], exact[i], bound(1e-5) * size);
    EXPECT_NEAR(alone[i], exact[i], bound(1e-5) * size);
  }
}

TEST_P(LargeMatrices, Eigenvectors) {
  for (const int64_t n : {32, 45, 130}) {
    int which = 0;
    for (const Tensor& half : spectra(n)) {
      SCOPED_TRACE(testing::Message() << n << ", matrix " << which++);
      expect_eigh(half);
    }
  }
}

// Their squares are no numbers of the dtype.
TEST_P(LargeMatrices, OfTinyAndOfHugeNumbers) {
  const Tensor square = some({40, 40}, 6), tall = some({80, 33}, 5);
  const bool is_double = GetParam() == float64;
  for (const double scale : {is_double ? 1e-200 : 1e-25, 1e20, is_double ? 1e200 : 1e25}) {
    SCOPED_TRACE(scale);
    expect_eigh(square * scale);
    expect_svd(square * scale, false);
    expect_svd(tall * scale, true);
    for (const Tensor& a : {square * scale, tall * scale}) {
      const auto [q, r] = linalg::qr(a);
      EXPECT_LT(worst(matmul(wide(q), wide(r)), wide(a)), bound(1e-5));
      EXPECT_LT(worst(matmul(wide(q), wide(q), {.transpose_a = true}), identity(q.dim(1))), bound(1e-5));
    }
  }
  // Of both in one matrix.
  const Tensor columns = narrow(concat({ones({20}), fill({20}, 1e-22f)}, 0));
  expect_eigh(square * columns * expand_dims(columns, 1));
  expect_svd(square * columns, false);
}

TEST_P(LargeMatrices, NothingIsFoundOfWhatIsNotFinite) {
  for (const float bad : {NAN, INFINITY}) {
    for (const int64_t n : {8, 40}) {
      SCOPED_TRACE(testing::Message() << bad << " in " << n);
      const Tensor mark = linalg::band_part(ones({n, n}), n - 1, 0) - linalg::band_part(ones({n, n}), n - 2, 0);
      const Tensor below = narrow(where(mark > 0.f, fill({n, n}, bad), eye(n)));  // the corner at the lower left
      EXPECT_THROW(linalg::eigvalsh(below), Error);
      EXPECT_THROW(linalg::eigh(below), Error);
      EXPECT_TRUE(is_nan(linalg::svdvals(below)));
      // The upper triangle is not read.
      EXPECT_EQ(number(reduce_max(linalg::eigvalsh(linalg::matrix_transpose(below)))), 1);
    }
    const Tensor tall = narrow(concat({eye(40), fill({1, 40}, bad)}, 0));
    EXPECT_TRUE(std::isnan(number(reduce_sum(linalg::qr(tall).r))));
  }
}

TEST_P(LargeMatrices, Batches) {
  const Tensor a = stack({some_matrix(40, 1), some_matrix(40, 2), some_matrix(40, 3)});
  const Tensor inverse = linalg::inv(a);
  for (int64_t i = 0; i < 3; ++i) test::expect_same_bits(inverse[i], linalg::inv(a[i]));
  const Tensor r = linalg::qr(a).r;
  for (int64_t i = 0; i < 3; ++i) test::expect_same_bits(r[i], linalg::qr(a[i]).r);
}

TEST_P(LargeMatrices, SameBitsWithAnyNumberOfThreads) {
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

TEST_P(LargeMatrices, SingularOnesAreRefused) {
  const Tensor a = narrow(linalg::set_diag(zeros({40, 40}), concat({ones({39}), zeros({1})}, 0)));
  test::expect_error([&] { linalg::inv(a); }, Code::invalid_argument, "not invertible");
  test::expect_error([&] { linalg::solve(a, ones({40, 1}, GetParam())); }, Code::invalid_argument, "not invertible");
}

}  // namespace
}  // namespace runnel
