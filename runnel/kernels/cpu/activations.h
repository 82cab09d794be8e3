#pragma once

// Activation functions that need an exponential, as functors for the loops (loops.h): vectorised for float
// (and through it the 16-bit types), the standard library for double. Same promise as vmath.h: an element's
// bits do not depend on its place.

#include <cmath>
#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

#define RUNNEL_ACTIVATIONS(X) X(elu, Elu) X(selu, Selu) X(softplus, Softplus)

namespace scalar {
template <class T>
T elu(T x) {
  return x < 0 ? std::expm1(x) : x;
}
template <class T>
T selu(T x) {
  return T(kSeluScale) * (x < 0 ? T(kSeluAlpha) * std::expm1(x) : x);
}
template <class T>
T softplus(T x) {
  return (x < 0 ? T(0) : x) + std::log1p(std::exp(-std::abs(x)));
}
}  // namespace scalar

#define RUNNEL_ACTIVATION_DECLARE(name, Name)                                    \
  RUNNEL_API void v##name(const float* x, float* y, int64_t n);                  \
  struct Name {                                                                  \
    template <class T>                                                           \
    T operator()(T x) const {                                                    \
      return scalar::name(x);                                                    \
    }                                                                            \
    static void block(const float* x, float* y, int64_t n) { v##name(x, y, n); } \
  };
RUNNEL_ACTIVATIONS(RUNNEL_ACTIVATION_DECLARE)
#undef RUNNEL_ACTIVATION_DECLARE

// y = dy * sigmoid(x)
RUNNEL_API void vsigmoid_times(const float* dy, const float* x, float* y, int64_t n);

}  // namespace runnel::cpu
