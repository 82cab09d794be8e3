#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>

#include "runnel/runnel.h"

namespace runnel {
namespace {

using testing::HasSubstr;

// A random batch of matrices of this dtype, well away from singular when square.
Tensor matrices(const Shape& shape, DType dtype, int64_t seed) {
  const DType part = dtype == float64 || dtype == complex128 ? float64 : float32;
  Tensor m = random::stateless_normal(shape, {seed, int64_t{1}}, 0, 1, part);
  if (is_complex(dtype)) m = complex(m, random::stateless_normal(shape, {seed, int64_t{2}}, 0, 1, part));
  if (shape[shape.rank() - 1] == shape[shape.rank() - 2]) {
    m = m + cast(eye(shape[shape.rank() - 1]), dtype) * cast(Tensor(3.f), dtype);
  }
  return m;
}
Tensor positive_definite(const Shape& shape, DType dtype, int64_t seed) {
  const Tensor m = matrices(shape, dtype, seed);
  return matmul(m, m, {.adjoint_b = true});
}

double largest(const Tensor& t) { return t.num_elements() == 0 ? 0 : cast(reduce_max(abs(t)), float64).item<double>(); }
void expect_near_matrix(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_LE(largest(a - b), tolerance * std::max(1.0, largest(b)));
}

class Linalg : public testing::TestWithParam<DType> {
 protected:
  double tolerance() const { return GetParam() == float64 || GetParam() == complex128 ? 1e-11 : 2e-4; }
  Tensor identity_like(const Shape& s) const {
    Dims dims = s.dims();
    return broadcast_to(cast(eye(dims.back()), GetParam()), s);
  }
};
INSTANTIATE_TEST_SUITE_P(Dtypes, Linalg, testing::Values(float32, float64, complex64, complex128),
                         [](const auto& info) { return dtype_name(info.param); });

TEST_P(Linalg, InverseTimesMatrixIsOne) {
  for (const Shape& s : {Shape{1, 1}, Shape{5, 5}, Shape{2, 3, 4, 4}}) {
    const Tensor a = matrices(s, GetParam(), 1);
    expect_near_matrix(matmul(linalg::inv(a), a), identity_like(s), tolerance());
    expect_near_matrix(matmul(linalg::inv(a, true), a, {.adjoint_b = true}), identity_like(s), tolerance());
  }
}

TEST_P(Linalg, DeterminantsByExpansion) {
  const Tensor a = matrices({3, 3}, GetParam(), 2);
  auto at = [&](int i, int j) { return a[i][j]; };
  auto minor = [&](int i, int j, int k, int l) { return at(i, k) * at(j, l) - at(i, l) * at(j, k); };
  const Tensor expected = at(0, 0) * minor(1, 2, 1, 2) - at(0, 1) * minor(1, 2, 0, 2) + at(0, 2) * minor(1, 2, 0, 1);
  expect_near_matrix(linalg::det(a), expected, tolerance());
  const auto [sign, log_abs] = linalg::slogdet(a);
  expect_near_matrix(sign * exp(log_abs), expected, tolerance());
}

TEST_P(Linalg, Solves) {
  const Tensor a = matrices({2, 4, 4}, GetParam(), 3);
  const Tensor b = matrices({2, 4, 3}, GetParam(), 4);
  expect_near_matrix(matmul(a, linalg::solve(a, b)), b, tolerance());
  expect_near_matrix(matmul(a, linalg::solve(a, b, true), {.adjoint_a = true}), b, tolerance());
  for (bool lower : {true, false}) {
    const Tensor t = lower ? linalg::band_part(a, -1, 0) : linalg::band_part(a, 0, -1);
    expect_near_matrix(matmul(t, linalg::triangular_solve(a, b, lower)), b, tolerance());
    expect_near_matrix(matmul(t, linalg::triangular_solve(a, b, lower, true), {.adjoint_a = true}), b, tolerance());
    // One matrix for a batch of right-hand sides.
    expect_near_matrix(matmul(t[0], linalg::triangular_solve(a[0], b, lower)), b, tolerance());
  }
}

TEST_P(Linalg, Cholesky) {
  const Tensor a = positive_definite({2, 4, 4}, GetParam(), 5);
  const Tensor l = linalg::cholesky(a);
  expect_near_matrix(matmul(l, l, {.adjoint_b = true}), a, tolerance());
  expect_near_matrix(linalg::band_part(l, -1, 0), l, 0);
  const Tensor b = matrices({2, 4, 1}, GetParam(), 6);
  expect_near_matrix(matmul(a, linalg::cholesky_solve(l, b)), b, tolerance() * 10);
  expect_near_matrix(cast(linalg::logdet(a), GetParam()), linalg::slogdet(a).log_abs_det, tolerance());
}

TEST_P(Linalg, Lu) {
  const Tensor a = matrices({3, 4, 4}, GetParam(), 7);
  const auto [lu, p] = linalg::lu(a);
  const Tensor l = linalg::set_diag(linalg::band_part(lu, -1, 0), ones_like(linalg::diag_part(lu)));
  expect_near_matrix(matmul(l, linalg::band_part(lu, 0, -1)), gather(a, p, 1, 1), tolerance());
  EXPECT_EQ(linalg::lu(a, int64).p.dtype(), int64);
}

TEST_P(Linalg, Qr) {
  for (const Shape& s : {Shape{4, 4}, Shape{2, 5, 3}, Shape{3, 5}}) {
    for (bool full : {false, true}) {
      const Tensor a = matrices(s, GetParam(), 8);
      const auto [q, r] = linalg::qr(a, full);
      expect_near_matrix(matmul(q, r), a, tolerance());
      expect_near_matrix(linalg::band_part(r, 0, -1), r, 0);
      const Tensor qq = matmul(q, q, {.adjoint_a = true});
      expect_near_matrix(qq, identity_like(qq.shape()), tolerance());
    }
  }
}

TEST_P(Linalg, Svd) {
  for (const Shape& s : {Shape{4, 4}, Shape{2, 5, 3}, Shape{3, 5}}) {
    const Tensor a = matrices(s, GetParam(), 9);
    const auto [values, u, v] = linalg::svd(a);
    EXPECT_TRUE(is_float(values.dtype()));
    expect_near_matrix(matmul(u * cast(expand_dims(values, -2), a.dtype()), v, {.adjoint_b = true}), a, tolerance());
    expect_near_matrix(linalg::svdvals(a), values, tolerance());
    const auto full = linalg::svd(a, true);
    const Tensor uu = matmul(full.u, full.u, {.adjoint_a = true});
    expect_near_matrix(uu, identity_like(uu.shape()), tolerance());
  }
}

TEST_P(Linalg, SvdOfWhatIsNotFiniteIsNaN) {
  for (const double bad : {NAN, INFINITY}) {
    const Tensor a = matrices({2, 3, 2}, GetParam(), 9) * cast(Tensor{{{1., 1.}, {bad, 1.}, {1., 1.}}}, GetParam());
    const auto [s, u, v] = linalg::svd(a, true);
    EXPECT_EQ(u.shape(), (Shape{2, 3, 3}));
    for (const Tensor& t : {s, u, v, linalg::svdvals(a)}) EXPECT_TRUE(reduce_all(is_nan(abs(t))).item<bool>());
  }
}

TEST_P(Linalg, LeastSquares) {
  const Tensor tall = matrices({2, 5, 3}, GetParam(), 21), wide = matrices({3, 5}, GetParam(), 22);
  const Tensor b = matrices({2, 5, 2}, GetParam(), 23), c = matrices({3, 2}, GetParam(), 24);
  for (const bool fast : {true, false}) {
    // What is left over is orthogonal to the columns.
    const Tensor rest = matmul(tall, linalg::lstsq(tall, b, 0, fast)) - b;
    expect_near_matrix(matmul(tall, rest, {.adjoint_a = true}), zeros({2, 3, 2}, GetParam()), 10 * tolerance());
    const Tensor x = linalg::lstsq(wide, c, 0, fast);
    expect_near_matrix(matmul(wide, x), c, 10 * tolerance());
    const Tensor shortest = matmul(linalg::svd(wide).v, linalg::svd(wide).v, {.adjoint_b = true});
    expect_near_matrix(matmul(shortest, x), x, 10 * tolerance());
  }
  const Tensor regular = matmul(tall, tall, {.adjoint_a = true}) + cast(eye(3) * 0.5, GetParam());
  expect_near_matrix(matmul(regular, linalg::lstsq(tall, b, 0.5)), matmul(tall, b, {.adjoint_a = true}),
                     10 * tolerance());
  const Tensor twice = concat({tall, tall}, -1);  // of rank 3
  expect_near_matrix(matmul(twice, linalg::lstsq(twice, b, 0, false)), matmul(tall, linalg::lstsq(tall, b)),
                     10 * tolerance());
}

// Real functions of complex matrices: the gradient against differences in both parts of every element.
TEST(LinalgComplex, Gradients) {
  const auto weigh = [](const Tensor& t) {
    const Tensor w = random::stateless_normal(t.shape(), {5, 6}, 0, 1, float64);
    return reduce_sum(w * t);
  };
  const std::vector<std::function<Tensor(const Tensor&)>> functions{
      [&](const Tensor& x) { return weigh(real(linalg::qr(x).q)) + weigh(imag(linalg::qr(x).r)); },
      [&](const Tensor& x) { return weigh(linalg::svd(x).s); },
      [&](const Tensor& x) { return weigh(square(abs(linalg::svd(x).u))) + weigh(square(abs(linalg::svd(x).v))); },
      [&](const Tensor& x) {
        const auto [s, u, v] = linalg::svd(x);  // does not depend on the phases of the vectors
        return weigh(real(matmul(u, v, {.adjoint_b = true})));
      },
      [&](const Tensor& x) {
        const Tensor square = matmul(x, x, {.adjoint_a = true}) * x(slice(0, 1), slice(0, 1));
        return imag(linalg::slogdet(square).sign) * 2 + real(linalg::slogdet(square).log_abs_det);
      }};
  for (const Shape& shape : {Shape{3, 3}, Shape{4, 3}, Shape{3, 4}}) {
    const Tensor a = matrices(shape, complex128, 31);
    for (size_t f = 0; f < functions.size(); ++f) {
      if (f == 4 && shape[0] < shape[1]) continue;  // singular
      GradientTape tape;
      tape.watch(a);
      const Tensor d = tape.gradient(functions[f](a), a);
      for (int64_t i = 0; i < a.num_elements(); ++i) {
        for (const std::complex<double> step : {std::complex<double>(1e-6, 0), std::complex<double>(0, 1e-6)}) {
          const auto at = [&](double sign) {
            auto values = a.to_vector<std::complex<double>>();
            values[static_cast<size_t>(i)] += sign * step;
            return functions[f](Tensor::of<std::complex<double>>(values, shape)).item<double>();
          };
          const double numeric = (at(1) - at(-1)) / 2e-6;
          const std::complex<double> g = d.to_vector<std::complex<double>>()[static_cast<size_t>(i)];
          EXPECT_NEAR(step.real() != 0 ? g.real() : g.imag(), numeric, 1e-5) << f << shape.str() << i;
        }
      }
    }
  }
}

TEST_P(Linalg, Eigh) {
  const Tensor a = positive_definite({2, 4, 4}, GetParam(), 10);
  const auto [e, v] = linalg::eigh(a);
  expect_near_matrix(matmul(a, v), v * expand_dims(e, -2), tolerance() * 10);
  expect_near_matrix(linalg::eigvalsh(a), e, tolerance());
}

TEST_P(Linalg, EmptyBatchesAndMatrices) {
  EXPECT_EQ(linalg::inv(zeros({0, 3, 3}, GetParam())).shape(), (Shape{0, 3, 3}));
  EXPECT_EQ(linalg::inv(zeros({0, 0}, GetParam())).shape(), (Shape{0, 0}));
  EXPECT_EQ(largest(linalg::det(zeros({0, 0}, GetParam())) - ones({}, GetParam())), 0);
  EXPECT_EQ(linalg::qr(zeros({0, 2}, GetParam())).r.shape(), (Shape{0, 2}));
  EXPECT_EQ(linalg::svd(zeros({3, 0}, GetParam())).s.shape(), (Shape{0}));
  EXPECT_EQ(linalg::cholesky(zeros({2, 0, 0}, GetParam())).shape(), (Shape{2, 0, 0}));
}

// d f(a) / d a by central differences against the tape; f gives a scalar.
void check_gradient(const Tensor& a, const std::function<Tensor(const Tensor&)>& f) {
  GradientTape tape;
  tape.watch(a);
  const auto analytic = Tensor(tape.gradient(f(a), a)).to_vector<double>();
  const auto base = a.to_vector<double>();
  for (size_t i = 0; i < base.size(); ++i) {
    auto at = [&](double h) {
      auto v = base;
      v[i] += h;
      return f(Tensor::of<double>(v, a.shape())).item<double>();
    };
    const double numeric = (at(1e-5) - at(-1e-5)) / 2e-5;
    EXPECT_NEAR(analytic[i], numeric, 1e-5 * std::max(1.0, std::abs(numeric))) << "element " << i;
  }
}
Tensor weigh(const Tensor& t) { return reduce_sum(t * random::stateless_normal(t.shape(), {5, 6}, 0, 1, float64)); }

TEST(LinalgGradients, SymmetricFunctionsOfTheInput) {
  const Tensor a = matrices({2, 3, 3}, float64, 11);
  check_gradient(a, [](const Tensor& x) { return weigh(linalg::cholesky(matmul(x, x, {.adjoint_b = true}))); });
  check_gradient(a, [](const Tensor& x) { return weigh(linalg::eigh(matmul(x, x, {.adjoint_b = true})).e); });
  check_gradient(a, [](const Tensor& x) {
    return weigh(square(linalg::eigh(matmul(x, x, {.adjoint_b = true})).v));  // the sign of a vector is arbitrary
  });
}
TEST(LinalgGradients, Decompositions) {
  for (const Shape& s : {Shape{3, 3}, Shape{2, 4, 3}, Shape{2, 4}}) {
    const Tensor a = matrices(s, float64, 12);
    check_gradient(a, [](const Tensor& x) { return weigh(linalg::qr(x).q) + weigh(linalg::qr(x).r); });
    check_gradient(a, [](const Tensor& x) { return weigh(linalg::svd(x).s); });
    check_gradient(a, [](const Tensor& x) { return weigh(square(linalg::svd(x).u)); });
    check_gradient(a, [](const Tensor& x) { return weigh(square(linalg::svd(x).v)); });
  }
  const Tensor a = matrices({2, 3, 3}, float64, 13);
  check_gradient(a, [](const Tensor& x) { return weigh(linalg::lu(x).lu); });
  check_gradient(a, [](const Tensor& x) { return weigh(linalg::inv(x)); });
  check_gradient(a, [](const Tensor& x) { return weigh(linalg::det(x)); });
  check_gradient(a, [](const Tensor& x) { return weigh(linalg::slogdet(x).log_abs_det); });
}

TEST(LinalgErrors, NameTheOpAndTheShapes) {
  auto message = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([] { linalg::inv(zeros({2, 2})); }), HasSubstr("[MatrixInverse] the matrix is not invertible"));
  EXPECT_THAT(message([] { linalg::det(zeros({2, 3})); }), HasSubstr("square matrices needed, got shape [2,3]"));
  EXPECT_THAT(message([] { linalg::solve(eye(2), zeros({3, 1})); }), HasSubstr("[MatrixSolve]"));
  EXPECT_THAT(message([] { linalg::lstsq(Tensor{1.f}, Tensor{{1.f}}); }), HasSubstr("matrices of known size"));
  EXPECT_THAT(message([] { linalg::qr(Tensor{1.f}); }), HasSubstr("linalg_test.cpp"));
  EXPECT_THAT(message([] { linalg::inv(Tensor{{1, 2}, {3, 4}}); }), HasSubstr("cannot be int32"));
}

}  // namespace
}  // namespace runnel
