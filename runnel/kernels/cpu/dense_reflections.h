#pragma once

// Internal to dense.cpp and dense_spectrum.cpp: reflections that are applied together, as products.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {

constexpr int64_t kReflections = 32;  // that are applied together

// C = alpha * op(A) * op(B) + beta * C
inline void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                    const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  gemm_f32(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
inline void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
                    const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  gemm_plain<double>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

// I - tau * v * transpose(v), which leaves of x its first element alone, as `left`. v is 1 and, behind it, x / divisor.
template <class T>
struct Reflection {
  T tau, left;
  double divisor;
};

// `square` is the sum of squares of x behind its first element. Where it may have vanished or overflown, as the floats
// 1e-25 and 1e20 do, it is taken again in double precision, of doubles divided by a power of two near the largest. What
// is not finite stays so.
template <class T>
Reflection<T> reflection_of(int64_t n, const T* x, T square) {
  constexpr bool is_double = std::is_same_v<T, double>;
  const T first = x[0], whole = first * first + square;
  double rest = square, scale = 1;
  if (!(whole > T(is_double ? 1e-200 : 1e-20) && whole < T(is_double ? 1e250 : 1e30))) {
    if constexpr (is_double) {
      double most = 0;
      for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
      if (most > 0 && std::isfinite(most)) scale = std::ldexp(1.0, std::clamp(std::ilogb(most), -1000, 1000));
    }
    rest = 0;
    for (int64_t i = 1; i < n; ++i) rest += (x[i] / scale) * (x[i] / scale);
  }
  if (rest == 0) return {0, first, 1};
  const double wide = first / scale, left = -std::copysign(std::sqrt(wide * wide + rest), wide);
  return {static_cast<T>((left - wide) / left), static_cast<T>(left * scale), (wide - left) * scale};
}

// I - transpose(v) * t * v, where v[k,m] has a vector in each row.
template <class T>
struct Reflections {
  // Of rows of w, of which row i leaves the elements before i alone: its vector is a 1 at i and what stands behind it.
  Reflections(ScratchFrame& frame, int64_t k, int64_t m, const T* w, int64_t ldw, const T* tau);

  // x[rows,m] becomes x * H, or, transposed, x * transpose(H).
  void apply(bool transposed, int64_t rows, T* x, int64_t ldx) const;

  int64_t k, m;
  T* v;
  T* t;  // [k,k], upper triangular
};

}  // namespace runnel::cpu
