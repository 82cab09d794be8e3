#pragma once

// Elementary functions over float arrays, vectorised by hand: within 2 units in the last place of the exact
// result over all floats (tested), right for NaN, infinities, zeros and denormals. Every element gets the
// same bits wherever it stands in the array, so a caller may cut at will; the bits depend on the instruction
// set alone. Serial: unary_loop<Exp, float, float> and its like run them on the pool. y may be x. Inside a
// fused kernel use the vector functions themselves (foreach_isa.h).

#include <cmath>
#include <complex>  // the functors serve complex types too
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runnel/base/export.h"
#include "runnel/kernels/cpu/vmath_double.h"

namespace runnel::cpu {

#define RUNNEL_VMATH_FUNCTIONS(X)                                                                                 \
  X(exp, Exp)                                                                                                     \
  X(expm1, Expm1)                                                                                                 \
  X(log, Log)                                                                                                     \
  X(log1p, Log1p)                                                                                                 \
  X(tanh, Tanh)                                                                                                   \
  X(sigmoid, Sigmoid)                                                                                             \
  X(sin, Sin)                                                                                                     \
  X(cos, Cos)                                                                                                     \
  X(tan, Tan)                                                                                                     \
  X(atan, Atan) X(erf, Erf) X(sqrt, Sqrt) X(rsqrt, Rsqrt) X(asin, Asin) X(acos, Acos) X(sinh, Sinh) X(cosh, Cosh) \
      X(asinh, Asinh) X(acosh, Acosh) X(atanh, Atanh)
#define RUNNEL_VMATH_FUNCTIONS_OF_TWO(X) X(atan2, Atan2) X(xlogy, Xlogy) X(xlog1py, Xlog1py) X(pow, Pow)

namespace scalar {
using std::acos;
using std::acosh;
using std::asin;
using std::asinh;
using std::atan;
using std::atanh;
using std::cos;
using std::cosh;
using std::erf;
using std::expm1;
using std::log1p;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::tanh;
template <class T>
auto exp(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return exp_of_double(x);
  } else {
    return std::exp(x);
  }
}
template <class T>
auto log(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return log_of_double(x);
  } else {
    return std::log(x);
  }
}
template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}
template <class T>
T rsqrt(T x) {
  return T(1) / sqrt(x);
}
}  // namespace scalar

// void vexp(const float* x, float* y, int64_t n), and the functor Exp for the loops: the array form for float
// (and through it the 16-bit types), for the other types the standard library, but for vmath_double.h.
#define RUNNEL_VMATH_DECLARE(name, Name)                                         \
  RUNNEL_API void v##name(const float* x, float* y, int64_t n);                  \
  struct Name {                                                                  \
    template <class T>                                                           \
    auto operator()(T x) const {                                                 \
      return scalar::name(x);                                                    \
    }                                                                            \
    static void block(const float* x, float* y, int64_t n) { v##name(x, y, n); } \
  };
RUNNEL_VMATH_FUNCTIONS(RUNNEL_VMATH_DECLARE)

// void vatan2(const float* y, const float* x, float* angle, int64_t n) and its like: of two arrays. xlogy is 0 where x
// is, else x log(y), xlog1py so with log(1 + y); pow is within 1 unit in the last place and as std::pow for special
// values.
#define RUNNEL_VMATH_DECLARE_OF_TWO(name, Name) \
  RUNNEL_API void v##name(const float* a, const float* b, float* y, int64_t n);
RUNNEL_VMATH_FUNCTIONS_OF_TWO(RUNNEL_VMATH_DECLARE_OF_TWO)
#undef RUNNEL_VMATH_DECLARE_OF_TWO

struct Atan2 {
  template <class T>
  T operator()(T y, T x) const {
    return std::atan2(without_denormal(y), without_denormal(x));
  }
  // The C library looks at bits: where denormals count as 0, it turns them into angles of no quadrant.
  template <class T>
  static T without_denormal(T x) {
    return std::abs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
  }
  static void block(const float* y, const float* x, float* angle, int64_t n) { vatan2(y, x, angle, n); }
};

}  // namespace runnel::cpu
