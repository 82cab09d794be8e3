// Complex numbers: functions against the standard library in long double, parts, and gradients by differences.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using C = std::complex<double>;
using L = std::complex<long double>;

struct Function {
  const char* name;
  Tensor (*function)(const Operand&);
  L (*reference)(const L&);
};

// By their series for small z, where the plain formulas lose every digit.
L expm1_reference(const L& z) {
  if (std::abs(z) > 1e-3L) return std::exp(z) - 1.0L;
  return z * (1.0L + z / 2.0L * (1.0L + z / 3.0L * (1.0L + z / 4.0L * (1.0L + z / 5.0L))));
}
L log1p_reference(const L& z) {
  if (std::abs(z) > 1e-3L) return std::log(z + 1.0L);
  return z * (1.0L - z * (1.0L / 2 - z * (1.0L / 3 - z * (1.0L / 4 - z / 5.0L))));
}

const Function kFunctions[] = {
    {"exp", exp, [](const L& z) { return std::exp(z); }},
    {"expm1", expm1, expm1_reference},
    {"log", log, [](const L& z) { return std::log(z); }},
    {"log1p", log1p, log1p_reference},
    {"sqrt", sqrt, [](const L& z) { return std::sqrt(z); }},
    {"rsqrt", rsqrt, [](const L& z) { return 1.0L / std::sqrt(z); }},
    {"square", square, [](const L& z) { return z * z; }},
    {"reciprocal", reciprocal, [](const L& z) { return 1.0L / z; }},
    {"sigmoid", sigmoid, [](const L& z) { return 1.0L / (1.0L + std::exp(-z)); }},
    {"sin", sin, [](const L& z) { return std::sin(z); }},
    {"cos", cos, [](const L& z) { return std::cos(z); }},
    {"tan", tan, [](const L& z) { return std::tan(z); }},
    {"asin", asin, [](const L& z) { return std::asin(z); }},
    {"acos", acos, [](const L& z) { return std::acos(z); }},
    {"atan", atan, [](const L& z) { return std::atan(z); }},
    {"sinh", sinh, [](const L& z) { return std::sinh(z); }},
    {"cosh", cosh, [](const L& z) { return std::cosh(z); }},
    {"tanh", tanh, [](const L& z) { return std::tanh(z); }},
    {"asinh", asinh, [](const L& z) { return std::asinh(z); }},
    {"acosh", acosh, [](const L& z) { return std::acosh(z); }},
    {"atanh", atanh, [](const L& z) { return std::atanh(z); }},
    {"negative", negative, [](const L& z) { return -z; }},
    {"conj", conj, [](const L& z) { return std::conj(z); }},
    {"sign", sign, [](const L& z) { return z / std::abs(z); }},
};

const std::vector<C> kValues{{0.5, 0.25}, {-1.5, 0.75}, {2, -3}, {0.3, 0}, {0, -0.8}, {1e-7, 2e-7}, {-0.2, -0.1}};

TEST(MathComplex, FunctionsOfOneOperand) {
  for (const Function& f : kFunctions) {
    const auto wide = f.function(Tensor::of<C>(kValues)).to_vector<C>();
    const auto narrow = f.function(cast(Tensor::of<C>(kValues), complex64)).to_vector<std::complex<float>>();
    for (size_t i = 0; i < kValues.size(); ++i) {
      const L expected = f.reference(L(kValues[i]));
      const long double scale = std::abs(expected);
      EXPECT_LE(std::abs(L(wide[i]) - expected), 4e-15L * scale) << f.name << kValues[i] << " is " << wide[i];
      EXPECT_LE(std::abs(L(narrow[i]) - expected), 2e-6L * scale) << f.name << kValues[i] << " is " << narrow[i];
    }
  }
}

// L(z) = Re(conj(w) f(z)) has the gradient dL/dRe + i dL/dIm.
void expect_gradient(const char* name, const std::function<Tensor(const Tensor&)>& f, const std::vector<C>& at) {
  const Tensor x = Tensor::of<C>(at);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  const bool to_complex = is_complex(y.dtype());
  const C w(0.7, to_complex ? -0.4 : 0);
  const Tensor dy = to_complex ? zeros_like(y) + w : zeros_like(y) + w.real();
  const auto got = tape.gradient(y, x, dy).value().to_vector<C>();
  const auto loss = [&](const C& z) {
    const Tensor v = f(Tensor::of<C>({z}));
    return to_complex ? std::real(std::conj(w) * v.to_vector<C>()[0]) : w.real() * v.to_vector<double>()[0];
  };
  const double h = 1e-6;
  for (size_t i = 0; i < at.size(); ++i) {
    const C expected((loss(at[i] + h) - loss(at[i] - h)) / (2 * h),
                     (loss(at[i] + C(0, h)) - loss(at[i] - C(0, h))) / (2 * h));
    EXPECT_LE(std::abs(got[i] - expected), 1e-7 * (1 + std::abs(expected))) << name << at[i] << ": " << got[i];
  }
}

TEST(MathComplex, Gradients) {
  const std::vector<C> at{{0.5, 0.25}, {-1.5, 0.75}, {0.8, -0.6}};
  for (const Function& f : kFunctions)
    expect_gradient(
        f.name, [&](const Tensor& x) { return f.function(x); }, at);
  expect_gradient(
      "real", [](const Tensor& x) { return real(x); }, at);
  expect_gradient(
      "imag", [](const Tensor& x) { return imag(x); }, at);
  expect_gradient(
      "angle", [](const Tensor& x) { return angle(x); }, at);
  expect_gradient(
      "abs", [](const Tensor& x) { return abs(x); }, at);
  const C c(0.4, -1.1);
  expect_gradient(
      "x * c", [&](const Tensor& x) { return x * c; }, at);
  expect_gradient(
      "x / c", [&](const Tensor& x) { return x / c; }, at);
  expect_gradient(
      "c / x", [&](const Tensor& x) { return c / x; }, at);
  expect_gradient(
      "x ^ c", [&](const Tensor& x) { return pow(x, c); }, at);
  expect_gradient(
      "c ^ x", [&](const Tensor& x) { return pow(c, x); }, at);
  expect_gradient(
      "|x - c|^2", [&](const Tensor& x) { return squared_difference(x, c); }, at);
  expect_gradient(
      "|c - x|^2", [&](const Tensor& x) { return squared_difference(c, x); }, at);
  expect_gradient(
      "x log c", [&](const Tensor& x) { return xlogy(x, c); }, at);
  expect_gradient(
      "c log x", [&](const Tensor& x) { return xlogy(c, x); }, at);
  expect_gradient(
      "c log1p x", [&](const Tensor& x) { return xlog1py(c, x); }, at);
  expect_gradient(
      "xdivy", [&](const Tensor& x) { return xdivy(c, x); }, at);
  expect_gradient(
      "divide_no_nan", [&](const Tensor& x) { return divide_no_nan(c, x); }, at);
  expect_gradient(
      "cast", [](const Tensor& x) { return cast(x * x, float64); }, at);
}

TEST(MathComplex, PartsAndBack) {
  const Tensor z = complex(Tensor{1.f, -2.f}, Tensor{3.f, 0.f});
  EXPECT_EQ(z.dtype(), complex64);
  EXPECT_EQ(real(z).to_vector<float>(), (std::vector<float>{1, -2}));
  EXPECT_EQ(imag(z).to_vector<float>(), (std::vector<float>{3, 0}));
  EXPECT_EQ(abs(Tensor{std::complex<float>(3, 4)}).item<float>(), 5);
  EXPECT_FLOAT_EQ(angle(z).to_vector<float>()[1], 3.14159265f);
  EXPECT_EQ(complex(Tensor::of<double>({1}), 2.5).item<C>(), C(1, 2.5));
  expect_error([] { complex(Tensor{1.f}, Tensor::of<double>({1})); }, Code::invalid_argument, "[Complex]");
}

TEST(MathComplex, RealTensorsAreComplexNumbersToo) {
  const Tensor x{1.5f, -2.f};
  EXPECT_EQ(real(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(conj(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(imag(x).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_FLOAT_EQ(angle(x).to_vector<float>()[1], 3.14159265f);
  EXPECT_EQ(angle(x).to_vector<float>()[0], 0);
}

TEST(MathComplex, ArithmeticMatchesTheStandardLibrary) {
  const C a(1.5, -0.5), b(-2, 3);
  const Tensor x = Tensor::of<C>({a}), y = Tensor::of<C>({b});
  const auto check = [](const Tensor& got, const C& expected) {
    EXPECT_LE(std::abs(got.item<C>() - expected), 1e-15 * std::abs(expected)) << got.item<C>();
  };
  check(x + y, a + b);
  check(x - y, a - b);
  check(x * y, a * b);
  check(x / y, a / b);
  check(pow(x, y), std::pow(a, b));
  check(2 * x, 2.0 * a);
  EXPECT_TRUE(static_cast<bool>(x == x));
  EXPECT_TRUE(static_cast<bool>(x != y));
  EXPECT_EQ(pow(Tensor::of<C>({0}), Tensor::of<C>({0})).item<C>(), C(1));
  expect_error([&] { static_cast<void>(x < y); }, Code::invalid_argument, "cannot be complex128");
}

}  // namespace
}  // namespace runnel
