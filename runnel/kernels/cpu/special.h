#pragma once

// Special functions: of one double, from which float32 results round once, and of float arrays, as in vmath.h (verfc
// and the functor Erfc, ...).

#include <cmath>

#include "runnel/base/export.h"
#include "runnel/kernels/cpu/vmath.h"

namespace runnel::cpu {

// log |gamma(x)|; unlike std::lgamma without a global sign, so that threads may call it.
RUNNEL_API double log_gamma(double x);
// The derivative of log gamma; NaN at 0 and the negative integers.
RUNNEL_API double digamma(double x);
// Hurwitz's zeta: the sum of (q + k)^-x over k = 0, 1, ...; x > 1.
RUNNEL_API double zeta(double x, double q);
// The derivative of digamma of order n = 0, 1, ...; NaN for other n.
RUNNEL_API double polygamma(double n, double x);
// How a draw x from Gamma(a, 1) moves with a while its quantile stays: dx/da.
RUNNEL_API double gamma_draw_slope(double a, double x);
// y with erf(y) = x; infinite at -1 and 1, NaN beyond.
RUNNEL_API double erf_inverse(double x);

#define RUNNEL_SPECIAL_FUNCTIONS(X) X(erfc, Erfc) X(erfinv, Erfinv) X(lgamma, Lgamma) X(digamma, Digamma)

namespace scalar {
using std::erfc;
template <class T>
T erfinv(T x) {
  return static_cast<T>(erf_inverse(x));
}
template <class T>
T lgamma(T x) {
  return static_cast<T>(log_gamma(x));
}
template <class T>
T digamma(T x) {
  return static_cast<T>(cpu::digamma(x));
}
}  // namespace scalar

RUNNEL_SPECIAL_FUNCTIONS(RUNNEL_VMATH_DECLARE)

}  // namespace runnel::cpu
