#pragma once

// Internal: the folding loops of reduce.cpp, per operation, type and instruction set.

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu::detail {

// fold(a, x) works on one element and, for arithmetic types, on a compiler vector of them.
struct SumOp {
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class V>
  RUNNEL_INLINE static void fold(V& a, const V& x) {
    a = static_cast<V>(a + x);
  }
};
struct ProdOp {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class V>
  RUNNEL_INLINE static void fold(V& a, const V& x) {
    if constexpr (std::is_unsigned_v<V> && sizeof(V) < sizeof(int)) {
      a = static_cast<V>(uint32_t{a} * uint32_t{x});
    } else {
      a = static_cast<V>(a * x);
    }
  }
};
// On vectors of floats, fold for max and min passes over NaN; fold_row finds them by itself, at less cost.
struct MaxOp {
  template <class T>
  static constexpr T identity() {
    using L = std::numeric_limits<T>;
    return L::has_infinity ? static_cast<T>(-L::infinity()) : L::lowest();
  }
  template <class V>
  RUNNEL_INLINE static void fold(V& a, const V& x) {
    if constexpr (std::is_arithmetic_v<V>) {
      a = ((x > a) | (x != x)) ? x : a;
    } else {
      a = x > a ? x : a;
    }
  }
};
struct MinOp {
  template <class T>
  static constexpr T identity() {
    using L = std::numeric_limits<T>;
    return L::has_infinity ? L::infinity() : L::max();
  }
  template <class V>
  RUNNEL_INLINE static void fold(V& a, const V& x) {
    if constexpr (std::is_arithmetic_v<V>) {
      a = ((x < a) | (x != x)) ? x : a;
    } else {
      a = x < a ? x : a;
    }
  }
};
struct AnyOp {
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class V>
  RUNNEL_INLINE static void fold(V& a, const V& x) {
    a = static_cast<V>(a | x);
  }
};
struct AllOp {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class V>
  RUNNEL_INLINE static void fold(V& a, const V& x) {
    a = static_cast<V>(a & x);
  }
};

// A number, or a vector of what stands at p, however that is aligned.
template <class E, class T>
RUNNEL_INLINE E loaded(const T* p) {
  E e;
  __builtin_memcpy(&e, p, sizeof e);
  return e;
}

// n contiguous elements: eight vector accumulators, folded pairwise, then the lanes, then the tail.
template <class Op, class T, int kBytes>
RUNNEL_INLINE T fold_row(const T* x, int64_t n) {
  T result = Op::template identity<T>();
  int64_t i = 0;
  if constexpr (std::is_arithmetic_v<T>) {
    typedef T V __attribute__((vector_size(kBytes)));
    constexpr int64_t L = kBytes / sizeof(T);
    if (n >= L) {
      constexpr bool seeks_nan =
          std::is_floating_point_v<T> && (std::is_same_v<Op, MaxOp> || std::is_same_v<Op, MinOp>);
      decltype(V{} != V{}) nan = {};
      const auto fold = [&](V & to, int64_t at) __attribute__((always_inline)) {
        const V v = loaded<V>(x + at);
        if constexpr (seeks_nan) nan |= v != v;
        Op::fold(to, v);
      };
      V a0 = Op::template identity<T>() - V{};
      if (n >= 8 * L) {
        V a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
        for (; i + 8 * L <= n; i += 8 * L) {
          fold(a0, i);
          fold(a1, i + L);
          fold(a2, i + 2 * L);
          fold(a3, i + 3 * L);
          fold(a4, i + 4 * L);
          fold(a5, i + 5 * L);
          fold(a6, i + 6 * L);
          fold(a7, i + 7 * L);
        }
        Op::fold(a0, a4);
        Op::fold(a1, a5);
        Op::fold(a2, a6);
        Op::fold(a3, a7);
        Op::fold(a0, a2);
        Op::fold(a1, a3);
        Op::fold(a0, a1);
      }
      for (; i + L <= n; i += L) fold(a0, i);
      if constexpr (seeks_nan) {
        for (int64_t k = 0; k < L; ++k) {
          if (nan[k]) return std::numeric_limits<T>::quiet_NaN();
        }
      }
      T lanes[L];
      for (int64_t k = 0; k < L; ++k) lanes[k] = a0[k];
      for (int64_t half = L / 2; half > 0; half /= 2) {
        for (int64_t k = 0; k < half; ++k) Op::fold(lanes[k], lanes[k + half]);
      }
      result = lanes[0];
    }
  } else {
    T a[4] = {result, result, result, result};
    for (; i + 4 <= n; i += 4) {
      for (int k = 0; k < 4; ++k) Op::fold(a[k], x[i + k]);
    }
    Op::fold(a[0], a[2]);
    Op::fold(a[1], a[3]);
    Op::fold(a[0], a[1]);
    result = a[0];
  }
  for (; i < n; ++i) Op::fold(result, x[i]);
  return result;
}

// Folds for max and min that pass over NaN on vectors, with NaN kept.
template <class Op>
struct KeepsNan {
  template <class V>
  RUNNEL_INLINE static void fold(V& a, const V& x) {
    Op::fold(a, x);
    a = x != x ? x : a;
  }
};

// y folded with eight rows of one column, pairwise; with E a vector, of as many columns.
template <class Op, class E, class T>
RUNNEL_INLINE void fold_eight(const T* x, int64_t stride, T* y) {
  const auto row = [&](int64_t i) __attribute__((always_inline))->E { return loaded<E>(x + i * stride); };
  E a = row(0), b = row(2), c = row(4), d = row(6), t = loaded<E>(y);
  Op::fold(a, row(1));
  Op::fold(b, row(3));
  Op::fold(c, row(5));
  Op::fold(d, row(7));
  Op::fold(a, b);
  Op::fold(c, d);
  Op::fold(a, c);
  Op::fold(t, a);
  __builtin_memcpy(y, &t, sizeof t);
}
template <class Op, class E, class T>
RUNNEL_INLINE void fold_one(const T* x, T* y) {
  E t = loaded<E>(y);
  Op::fold(t, loaded<E>(x));
  __builtin_memcpy(y, &t, sizeof t);
}

// y[j] folded with x[0][j], ..., x[rows - 1][j]: eight rows at a time, so that y is touched seldom and the
// eight are folded pairwise.
template <class Op, class T, int kBytes>
RUNNEL_INLINE void fold_columns(const T* x, int64_t rows, int64_t stride, int64_t cols, T* y) {
  if constexpr (std::is_floating_point_v<T> && (std::is_same_v<Op, MaxOp> || std::is_same_v<Op, MinOp>)) {
    // No compiler turns these folds into vectors by itself. The last vector may overlap the one before: folding an
    // element twice changes nothing.
    typedef T V __attribute__((vector_size(kBytes)));
    constexpr int64_t L = kBytes / sizeof(T);
    if (cols >= L) {
      for (int64_t i = 0; i < rows;) {
        const T* p = x + i * stride;
        const bool eight = i + 8 <= rows;
        for (int64_t at = 0; at < cols; at += L) {
          const int64_t j = at + L <= cols ? at : cols - L;
          if (eight) {
            fold_eight<KeepsNan<Op>, V>(p + j, stride, y + j);
          } else {
            fold_one<KeepsNan<Op>, V>(p + j, y + j);
          }
        }
        i += eight ? 8 : 1;
      }
      return;
    }
  }
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8) {
    const T* p = x + i * stride;
    RUNNEL_IVDEP
    for (int64_t j = 0; j < cols; ++j) fold_eight<Op, T, T>(p + j, stride, y + j);
  }
  for (; i < rows; ++i) {
    const T* p = x + i * stride;
    RUNNEL_IVDEP
    for (int64_t j = 0; j < cols; ++j) fold_one<Op, T, T>(p + j, y + j);
  }
}

template <class T>
struct ReduceKernels {
  T identity;
  T (*row)(const T* x, int64_t n);
  void (*rows)(const T* x, int64_t count, int64_t n, T* y);  // each of `count` rows of n elements by itself
  void (*columns)(const T* x, int64_t rows, int64_t stride, int64_t cols, T* y);
};

template <class Op, class T>
T row_base(const T* x, int64_t n) {
  return fold_row<Op, T, 16>(x, n);
}
template <class Op, class T>
RUNNEL_AVX2 RUNNEL_FLATTEN T row_avx2(const T* x, int64_t n) {
  return fold_row<Op, T, 32>(x, n);
}
template <class Op, class T>
void rows_base(const T* x, int64_t count, int64_t n, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = fold_row<Op, T, 16>(x + i * n, n);
}
template <class Op, class T>
RUNNEL_AVX2 RUNNEL_FLATTEN void rows_avx2(const T* x, int64_t count, int64_t n, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = fold_row<Op, T, 32>(x + i * n, n);
}
template <class Op, class T>
void columns_base(const T* x, int64_t rows, int64_t stride, int64_t cols, T* y) {
  fold_columns<Op, T, 16>(x, rows, stride, cols, y);
}
template <class Op, class T>
RUNNEL_AVX2 RUNNEL_FLATTEN void columns_avx2(const T* x, int64_t rows, int64_t stride, int64_t cols, T* y) {
  fold_columns<Op, T, 32>(x, rows, stride, cols, y);
}

template <class Op, class T>
ReduceKernels<T> reduce_kernels() {
  // Unsigned types of these sizes stand for the signed ones in sums and products.
  constexpr bool wide = std::is_arithmetic_v<T> && sizeof(T) >= 4;
  if constexpr (wide) {
    if (has_avx2()) return {Op::template identity<T>(), &row_avx2<Op, T>, &rows_avx2<Op, T>, &columns_avx2<Op, T>};
  }
  return {Op::template identity<T>(), &row_base<Op, T>, &rows_base<Op, T>, &columns_base<Op, T>};
}

}  // namespace runnel::cpu::detail
