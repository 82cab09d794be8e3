// Functions of one operand against the standard library in long double, over all floating dtypes and the values
// where such functions go wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using Real = long double;

struct Unary {
  const char* name;
  Tensor (*function)(const Operand&);
  Real (*reference)(Real);
  double ulp = 2;  // of float32; float64 is the library's own and gets as much
};
std::ostream& operator<<(std::ostream& out, const Unary& u) { return out << u.name; }

const Unary kUnary[] = {
    {"exp", exp, [](Real x) { return std::exp(x); }},
    {"expm1", expm1, [](Real x) { return std::expm1(x); }},
    {"log", log, [](Real x) { return std::log(x); }},
    {"log1p", log1p, [](Real x) { return std::log1p(x); }},
    {"sqrt", sqrt, [](Real x) { return std::sqrt(x); }},
    {"rsqrt", rsqrt, [](Real x) { return 1 / std::sqrt(x); }},
    {"square", square, [](Real x) { return x * x; }},
    {"reciprocal", reciprocal, [](Real x) { return 1 / x; }},
    {"sigmoid", sigmoid, [](Real x) { return 1 / (1 + std::exp(-x)); }, 3},
    {"sin", sin, [](Real x) { return std::sin(x); }},
    {"cos", cos, [](Real x) { return std::cos(x); }},
    {"tan", tan, [](Real x) { return std::tan(x); }},
    {"asin", asin, [](Real x) { return std::asin(x); }},
    {"acos", acos, [](Real x) { return std::acos(x); }},
    {"atan", atan, [](Real x) { return std::atan(x); }},
    {"sinh", sinh, [](Real x) { return std::sinh(x); }, 3},
    {"cosh", cosh, [](Real x) { return std::cosh(x); }, 3},
    {"tanh", tanh, [](Real x) { return std::tanh(x); }, 3},
    {"asinh", asinh, [](Real x) { return std::asinh(x); }, 3},
    {"acosh", acosh, [](Real x) { return std::acosh(x); }, 3},
    {"atanh", atanh, [](Real x) { return std::atanh(x); }, 3},
    {"erf", erf, [](Real x) { return std::erf(x); }},
    {"erfc", erfc, [](Real x) { return std::erfc(x); }, 6},
    {"lgamma", lgamma, [](Real x) { return std::lgamma(x); }, 8},
    {"floor", floor, [](Real x) { return std::floor(x); }, 0},
    {"ceil", ceil, [](Real x) { return std::ceil(x); }, 0},
    {"round", round, [](Real x) { return std::nearbyint(x); }, 0},
    {"rint", rint, [](Real x) { return std::nearbyint(x); }, 0},
    {"abs", abs, [](Real x) { return std::abs(x); }, 0},
    {"negative", negative, [](Real x) { return -x; }, 0},
    {"sign", sign, [](Real x) { return x > 0   ? Real(1)
                                       : x < 0 ? Real(-1)
                                               : x; }, 0},
};

// A step of T at `x`, denormals included.
template <class T>
Real step(Real x) {
  using Limits = std::numeric_limits<T>;
  const Real smallest = std::ldexp(Real(1), Limits::min_exponent - Limits::digits);
  if (x == 0 || !std::isfinite(x)) return smallest;
  return std::max(smallest, std::ldexp(Real(1), std::ilogb(x) - Limits::digits + 1));
}

// Kernels count denormals of the type they compute in as 0; where they only move bits (abs) it is the next that does.
template <class T>
Real flushed(Real x) {
  using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;
  return std::abs(x) < std::numeric_limits<Computed>::min() ? std::copysign(Real(0), x) : x;
}

template <class T>
void expect_near(T got, Real expected, double ulp, const std::string& what) {
  const Real value = static_cast<Real>(static_cast<std::conditional_t<HalfFloat<T>, float, T>>(got));
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << what << " is " << value;
    return;
  }
  const Real largest = static_cast<Real>(static_cast<double>(std::numeric_limits<T>::max()));
  if (std::abs(expected) >= largest) {
    const bool near = std::abs(value) >= largest * (1 - Real(1e-2));
    EXPECT_TRUE(near && std::signbit(value) == std::signbit(expected)) << what << " is " << value;
    return;
  }
  EXPECT_LE(std::abs(value - expected), ulp * step<T>(expected)) << what << " is " << value << ", not " << expected;
  if (value == 0 && expected == 0) {
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << "the zero of " << what;
  }
}

const double kArguments[] = {0.0,  0.125, 0.3,  0.5,  0.75, 0.99,  1.0,   1.5, 2.0,     2.5,       3.5,  5.0, 10.0,
                             20.0, 85.0,  1e-3, 1e-6, 1e-9, 1e-20, 1e-42, 1e4, 65504.0, 123456.75, 1e10, 1e30};

template <class T>
std::vector<T> inputs() {
  std::vector<T> values;
  const auto add = [&](double v) {
    if constexpr (HalfFloat<T>) {
      values.push_back(T(static_cast<float>(v)));
    } else {
      values.push_back(static_cast<T>(v));
    }
  };
  for (double v : kArguments) {
    add(v);
    add(-v);
  }
  add(INFINITY);
  add(-INFINITY);
  add(NAN);
  return values;
}

class MathUnary : public ::testing::TestWithParam<Unary> {
 public:
  template <class T>
  void check(double ulp) {
    const std::vector<T> x = inputs<T>();
    const std::vector<T> y = GetParam().function(Tensor::of<T>(x)).template to_vector<T>();
    ASSERT_EQ(y.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto real = [](T t) {
        return static_cast<Real>(static_cast<std::conditional_t<HalfFloat<T>, float, T>>(t));
      };
      const Real v = real(x[i]);
      expect_near<T>(T(static_cast<std::conditional_t<HalfFloat<T>, float, T>>(flushed<T>(real(y[i])))),
                     flushed<T>(GetParam().reference(flushed<T>(v))), ulp,
                     std::string(GetParam().name) + "(" + std::to_string(static_cast<double>(v)) + ") of " +
                         dtype_name(dtype_of<T>));
    }
  }
};

TEST_P(MathUnary, Float32) { check<float>(GetParam().ulp); }
TEST_P(MathUnary, Float64) { check<double>(std::max(1.0, GetParam().ulp) + 1); }
TEST_P(MathUnary, Float16) { check<Half>(std::min(GetParam().ulp, 0.52)); }
TEST_P(MathUnary, BFloat16) { check<BFloat16>(std::min(GetParam().ulp, 0.52)); }

TEST_P(MathUnary, EmptyAndScalar) {
  EXPECT_EQ(GetParam().function(Tensor::empty(float32, Shape{0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(GetParam().function(Tensor(0.5f)).rank(), 0);
}

TEST_P(MathUnary, OneAndTwoThreadsGiveTheSameBits) {
  std::vector<float> x(200'003);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<double>(i * 7919 % 100'003) / 20'000 - 2.5);
  const Tensor in = Tensor::of<float>(x);
  const int threads = num_threads();
  set_num_threads(1);
  const auto one = GetParam().function(in).to_vector<float>();
  set_num_threads(2);
  const auto two = GetParam().function(in).to_vector<float>();
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0);
  for (size_t i = 0; i < x.size(); i += 997) {
    expect_near<float>(two[i], GetParam().reference(x[i]), GetParam().ulp, std::to_string(x[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MathUnary, ::testing::ValuesIn(kUnary),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MathUnaryIntegers, WrapAround) {
  const auto check = []<class T>(T) {
    const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    const Tensor x = Tensor::of<T>(std::vector<T>{low, high, T(0), T(3)});
    const auto square_of = [](T v) { return static_cast<T>(static_cast<uint64_t>(v) * static_cast<uint64_t>(v)); };
    EXPECT_EQ(square(x).template to_vector<T>(), (std::vector<T>{square_of(low), square_of(high), 0, 9}));
    EXPECT_EQ(negative(x).template to_vector<T>(),
              (std::vector<T>{static_cast<T>(0 - static_cast<uint64_t>(low)), static_cast<T>(-high), 0, T(-3)}));
    if constexpr (std::is_signed_v<T>) {
      EXPECT_EQ(abs(x).template to_vector<T>(), (std::vector<T>{low, high, 0, 3}));
      EXPECT_EQ(sign(x).template to_vector<T>(), (std::vector<T>{-1, 1, 0, 1}));
      EXPECT_EQ(round(x).template to_vector<T>(), x.to_vector<T>());
    }
  };
  integers.for_each([&]<class T>() { check(T()); });
}

TEST(MathUnary, ErfinvUndoesErf) {
  for (double p : {0.0, 1e-300, 1e-12, 1e-5, 0.1, 0.25, 0.5, 0.51, 0.9, 0.999, 1 - 1e-9, 1 - 0x1p-53}) {
    for (double sign : {1.0, -1.0}) {
      const double y = erfinv(Tensor::of<double>({sign * p})).to_vector<double>()[0];
      // Compared through the error of y: dy = dp / erf'(y).
      const Real slope = 2 / std::sqrt(std::acos(Real(-1))) * std::exp(-Real(y) * y);
      const Real miss = p > 0.5 ? Real(1 - p) - std::erfc(std::abs(Real(y))) : std::erf(std::abs(Real(y))) - Real(p);
      EXPECT_LE(std::abs(miss / slope), 4e-16 * std::max(Real(std::abs(y)), Real(1e-310))) << p;
      EXPECT_EQ(std::signbit(y), sign < 0);
    }
  }
  const auto ends = erfinv(Tensor{1.f, -1.f, 1.5f, NAN}).to_vector<float>();
  EXPECT_EQ(ends[0], INFINITY);
  EXPECT_EQ(ends[1], -INFINITY);
  EXPECT_TRUE(std::isnan(ends[2]) && std::isnan(ends[3]));
}

// Digamma by its definition as a difference of lgamma, and by sums: psi(n) = H(n-1) - gamma.
TEST(MathUnary, DigammaAndPolygamma) {
  const Real euler = 0.57721566490153286060651209008240243L;
  Real harmonic = 0;
  for (int n = 1; n < 40; ++n) {
    const double got = digamma(Tensor::of<double>({static_cast<double>(n)})).to_vector<double>()[0];
    EXPECT_NEAR(got, static_cast<double>(harmonic - euler), 1e-14) << n;
    harmonic += Real(1) / n;
  }
  for (double x : {0.3, 1.7, 6.2, 25.0, -0.4, -3.7}) {
    const Real h = 1e-4;
    const Real slope = (std::lgamma(Real(x) + h) - std::lgamma(Real(x) - h)) / (2 * h);
    EXPECT_NEAR(digamma(Tensor::of<double>({x})).to_vector<double>()[0], static_cast<double>(slope), 1e-6) << x;
  }
  // Direct sums with the integral of the tail.
  for (int order : {1, 2, 3, 5}) {
    for (double x : {0.5, 1.0, 2.5, 12.0}) {
      Real sum = 0, factorial = 1;
      const int terms = 20000;
      for (int k = 0; k < terms; ++k) sum += std::pow(Real(x) + k, -(order + 1));
      const Real end = Real(x) + terms;
      sum += std::pow(end, -order) / order + std::pow(end, -(order + 1)) / 2;
      for (int k = 2; k <= order; ++k) factorial *= k;
      const Real expected = (order % 2 ? 1 : -1) * factorial * sum;
      const double got =
          polygamma(Tensor::of<double>({static_cast<double>(order)}), Tensor::of<double>({x})).to_vector<double>()[0];
      EXPECT_NEAR(got / static_cast<double>(expected), 1, 1e-11) << order << ", " << x;
      EXPECT_NEAR(zeta(Tensor::of<double>({order + 1.0}), Tensor::of<double>({x})).to_vector<double>()[0] /
                      static_cast<double>(sum),
                  1, 1e-11);
    }
  }
  const auto odd = digamma(Tensor{0.f, -1.f, INFINITY, -INFINITY}).to_vector<float>();
  EXPECT_TRUE(std::isnan(odd[0]) && std::isnan(odd[1]) && odd[2] == INFINITY && std::isnan(odd[3]));
  EXPECT_TRUE(std::isnan(polygamma(Tensor{0.5f}, Tensor{1.f}).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(polygamma(Tensor{-1.f}, Tensor{1.f}).to_vector<float>()[0]));
}

TEST(MathUnary, GradientsOfPolygammaAndZeta) {
  const Tensor n = Tensor::of<double>({1, 2}), x = Tensor::of<double>({1.5, 0.7});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor p = polygamma(n, x), z = zeta(n + 1, x);
  const auto dp = tape.gradient(p, x).value().to_vector<double>();
  const auto dz = tape.gradient(z, x).value().to_vector<double>();
  const double h = 1e-5;
  const auto up = polygamma(n, x + h).to_vector<double>(), down = polygamma(n, x - h).to_vector<double>();
  const auto zup = zeta(n + 1, x + h).to_vector<double>(), zdown = zeta(n + 1, x - h).to_vector<double>();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(dp[i] / ((up[i] - down[i]) / (2 * h)), 1, 1e-6);
    EXPECT_NEAR(dz[i] / ((zup[i] - zdown[i]) / (2 * h)), 1, 1e-6);
  }
}

TEST(MathUnary, RefusesOtherDtypes) {
  expect_error([] { exp(Tensor{1}); }, Code::invalid_argument, "[Exp] x cannot be int32");
  expect_error([] { floor(Tensor{true}); }, Code::invalid_argument, "cannot be bool");
  expect_error([] { lgamma(Tensor{std::complex<float>(1, 2)}); }, Code::invalid_argument, "cannot be complex64");
  expect_error([] { abs(Tensor{"text"}); }, Code::invalid_argument, "cannot be string");
}

}  // namespace
}  // namespace runnel
