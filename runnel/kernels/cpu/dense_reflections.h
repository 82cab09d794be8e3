#pragma once

// Internal to dense.cpp and dense_spectrum.cpp: reflections that are applied together, as products.
#include <cmath>
#include <cstdint>

#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {

constexpr int64_t kReflections = 32;  // that are applied together

// I - tau * v * transpose(v), which leaves of x its first element alone, as `left`. v is 1 and, behind it, x / divisor.
struct Reflection {
  float tau, left;
  double divisor;
};

// `square` is the sum of squares of x behind its first element. Where it may have vanished or overflown, as the squares
// of 1e-25 and 1e20 do, it is taken again in double precision. What is not finite stays so.
inline Reflection reflection_of(int64_t n, const float* x, float square) {
  const float first = x[0], whole = first * first + square;
  double rest = square;
  if (!(whole > 1e-20f && whole < 1e30f)) {
    rest = 0;
    for (int64_t i = 1; i < n; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  if (rest == 0) return {0, first, 1};
  const double wide = first, left = -std::copysign(std::sqrt(wide * wide + rest), wide);
  return {static_cast<float>((left - wide) / left), static_cast<float>(left), wide - left};
}

// I - transpose(v) * t * v, where v[k,m] has a vector in each row.
struct Reflections {
  // Of rows of w, of which row i leaves the elements before i alone: its vector is a 1 at i and what stands behind it.
  Reflections(ScratchFrame& frame, int64_t k, int64_t m, const float* w, int64_t ldw, const float* tau);

  // x[rows,m] becomes x * H, or, transposed, x * transpose(H).
  void apply(bool transposed, int64_t rows, float* x, int64_t ldx) const;

  int64_t k, m;
  float* v;
  float* t;  // [k,k], upper triangular
};

}  // namespace runnel::cpu
