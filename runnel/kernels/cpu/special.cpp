#include "runnel/kernels/cpu/special.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace runnel::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Bernoulli numbers B2, B4, ..., B20.
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                 -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

}  // namespace

double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (std::isnan(x) || x == -kInf) return kNan;
  if (x == kInf) return x;
  if (x <= 0) {
    if (x == std::floor(x)) return kNan;
    // Reflection; the tangent of what is left of a whole number keeps its precision for small and large -x.
    const double fraction = x - std::nearbyint(x);
    return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * fraction);
  }
  double shifted = 0;
  for (; x < 10; x += 1) shifted -= 1 / x;
  const double inverse = 1 / (x * x);
  double tail = 0;
  double power = inverse;
  for (int k = 1; k <= 8; ++k, power *= inverse) tail += kBernoulli[k - 1] / (2 * k) * power;
  return shifted + std::log(x) - 0.5 / x - tail;
}

double zeta(double x, double q) {
  if (std::isnan(x) || std::isnan(q) || x < 1) return kNan;
  if (x == 1) return kInf;
  if (q <= 0) {
    const bool even = x == std::floor(x) && std::fmod(x, 2) == 0;
    if (q == std::floor(q)) return even ? kInf : kNan;
    if (x != std::floor(x)) return kNan;  // a root of a negative number
  }
  if (q == kInf) return 0;
  // Terms up to q + k >= 10, then Euler and Maclaurin's formula for the rest.
  double sum = 0;
  double w = q;
  for (; w < 10; w += 1) {
    const double term = std::pow(w, -x);
    sum += term;
    if (w > 1 && term < sum * 1e-18) return sum;
  }
  const double first = std::pow(w, -x);
  sum += first * w / (x - 1) + 0.5 * first;
  double factor = x * first / (2 * w);  // x (x+1) ... (x+2k-2) / (2k)! w^(-x-2k+1)
  for (int k = 1; k <= 10; ++k) {
    const double term = kBernoulli[k - 1] * factor;
    sum += term;
    if (std::abs(term) < std::abs(sum) * 1e-17) break;
    factor *= (x + 2 * k - 1) * (x + 2 * k) / ((2 * k + 1) * (2 * k + 2) * w * w);
  }
  return sum;
}

double polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return kNan;
  if (n == 0) return digamma(x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::tgamma(n + 1) * zeta(n + 1, x);
}

double gamma_draw_slope(double a, double x) {
  if (x == 0) return 0;
  if (!(a > 0) || !(x > 0)) return kNan;
  if (a == kInf || x == kInf) return 0;
  if (a > 1e5) {
    // Nearly a normal distribution: the derivative of Cornish and Fisher's expansion of the quantile, in the distance
    // from the mean. What is left out is about (distance / a)^4 / 20.
    const double w = (x - a) / std::sqrt(a), far = (x - a) / a;
    if (a > 1e8 || std::abs(w) < 8) return 1 + far / 2 - (far * far - 1 / a) / 6 + far * (far * far + 1 / a) / 12;
  }
  // The quantile P(a, x) stays: dx/da = -(dP/da) / p with the density p = x^(a-1) exp(-x) / gamma(a).
  if (x <= 1 || x <= a) {
    // P / p is the sum of x^(n+1) / (a (a+1) ... (a+n)); the logarithm of each term of P has a simple derivative.
    const double log_x = std::log(x);
    double term = x / a, psi = digamma(a) + 1 / a, sum = 0;
    for (double n = 1;; ++n) {
      const double part = term * (log_x - psi);
      sum -= part;
      if (!(std::abs(part) > 1e-17 * std::abs(sum)) && a + n > x) return sum;
      term *= x / (a + n);
      psi += 1 / (a + n);
    }
  }
  // The rest above x over p is the integral of (1 + u/x)^(a-1) exp(-u) over u > 0: the trapezoidal rule after u =
  // width * exp(pi/2 sinh(t)).
  const double psi = digamma(a), width = 1 / (1 - (a - 1) / x + 1 / std::sqrt(x));
  constexpr int kSteps = 64;
  constexpr double kStep = 4.0 / kSteps;
  double sum = 0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    const double t = i * kStep;
    const double u = width * std::exp(std::numbers::pi / 2 * std::sinh(t));
    const double weight = std::exp((a - 1) * std::log1p(u / x) - u);
    if (weight > 0) sum += weight * (std::log(x + u) - psi) * u * std::cosh(t);
  }
  return sum * kStep * std::numbers::pi / 2;
}

double erf_inverse(double x) {
  const double magnitude = std::abs(x);
  if (!(magnitude < 1)) return magnitude == 1 ? std::copysign(kInf, x) : kNan;
  // A closed form good to two digits, then Halley's steps, each tripling them. The upper half is solved through
  // erfc, where 1 - x is exact.
  constexpr double a = 0.147;
  const double log_rest = std::log1p(-magnitude) + std::log1p(magnitude);
  const double t = 2 / (std::numbers::pi * a) + log_rest / 2;
  double y = std::sqrt(std::sqrt(t * t - log_rest / a) - t);
  for (int step = 0; step < 3; ++step) {
    const double miss = magnitude > 0.5 ? (1 - magnitude) - std::erfc(y) : std::erf(y) - magnitude;
    const double u = miss / (2 * std::numbers::inv_sqrtpi * std::exp(-y * y));
    y -= u / (1 + y * u);
  }
  return std::copysign(y, x);
}

}  // namespace runnel::cpu
