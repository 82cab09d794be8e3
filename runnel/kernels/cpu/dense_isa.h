// What dense factorisations do to vectors and small triangles, for one instruction set (see foreach_isa.h). T is float
// or double.

#include "runnel/kernels/cpu/simd_double_isa.h"

template <class T>
RUNNEL_ISA_TARGET T dot(int64_t n, const T* x, const T* y) {
  constexpr int N = kLanes<T>;
  auto a = splat(T(0)), b = a;
  int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    a = fma(load(x + i), load(y + i), a);
    b = fma(load(x + i + N), load(y + i + N), b);
  }
  for (; i + N <= n; i += N) a = fma(load(x + i), load(y + i), a);
  if (i < n) b = fma(load_n(x + i, n - i), load_n(y + i, n - i), b);
  return sum(a + b);
}

// y += a * x
template <class T>
RUNNEL_ISA_TARGET void axpy(int64_t n, T a, const T* x, T* y) {
  constexpr int N = kLanes<T>;
  const auto f = splat(a);
  int64_t i = 0;
  for (; i + N <= n; i += N) store(y + i, fma(f, load(x + i), load(y + i)));
  if (i < n) store_n(y + i, fma(f, load_n(x + i, n - i), load_n(y + i, n - i)), n - i);
}

template <class T>
RUNNEL_ISA_TARGET void scale(int64_t n, T a, T* x) {
  constexpr int N = kLanes<T>;
  int64_t i = 0;
  for (; i + N <= n; i += N) store(x + i, load(x + i) * a);
  if (i < n) store_n(x + i, load_n(x + i, n - i) * a, n - i);
}

// A few rows of a triangular solve, one after the other.
template <class T>
RUNNEL_ISA_TARGET void solve_rows(bool lower, bool unit, int64_t n, int64_t m, const T* a, int64_t lda, T* b,
                                  int64_t ldb) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = lower ? k : n - 1 - k;
    T* row = b + i * ldb;
    for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); ++j) axpy(m, -a[i * lda + j], b + j * ldb, row);
    if (unit) continue;
    constexpr int N = kLanes<T>;
    const auto divisor = splat(a[i * lda + i]);
    int64_t c = 0;
    for (; c + N <= m; c += N) store(row + c, load(row + c) / divisor);
    for (; c < m; ++c) row[c] = row[c] / a[i * lda + i];
  }
}

// LU of m rows and n columns, column by column; swaps rows within these columns alone.
template <class T>
RUNNEL_ISA_TARGET void lu_columns(int64_t m, int64_t n, T* a, int64_t lda, int32_t* swaps) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    T most = -1;
    for (int64_t i = k; i < m; ++i) {
      const T size = std::abs(a[i * lda + k]);
      if (size > most) most = size, pivot = i;
    }
    swaps[k] = static_cast<int32_t>(pivot);
    T* row = a + k * lda;
    if (pivot != k) {
      for (int64_t j = 0; j < n; ++j) std::swap(row[j], a[pivot * lda + j]);
    }
    if (row[k] == 0) continue;
    for (int64_t i = k + 1; i < m; ++i) {
      T* other = a + i * lda;
      other[k] /= row[k];
      axpy(n - k - 1, -other[k], row + k + 1, other + k + 1);
    }
  }
}
