#pragma once

// Remainders of floats, exact as std::fmod is, as functors for the loops (loops.h).

#include <cmath>
#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// z = the remainder with the sign of x (TruncateMod) or of y (FloorMod). z may be x or y.
RUNNEL_API void vtruncate_mod(const float* x, const float* y, float* z, int64_t n);
RUNNEL_API void vfloor_mod(const float* x, const float* y, float* z, int64_t n);

template <class T>
T truncate_mod(T x, T y) {
  return std::fmod(x, y);
}
template <class T>
T floor_mod(T x, T y) {
  const T m = std::fmod(x, y);
  return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

}  // namespace runnel::cpu
