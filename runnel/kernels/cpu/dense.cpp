#include "runnel/kernels/cpu/dense.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/dense_reflections.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/scratch.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/dense_isa.h"
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {
namespace {

// Triangles of this size are solved and factored row by row; larger ones are halved, and what joins the halves is a
// product.
constexpr int64_t kSmallTriangle = 32;
constexpr int64_t kSmallColumns = 16;

int64_t half_of(int64_t n, int64_t small) { return (n / 2 + small - 1) / small * small; }

// C -= A * op(B)
template <class T>
void subtract_product(bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                      int64_t ldc) {
  product(false, tb, m, n, k, T(-1), a, lda, b, ldb, T(1), c, ldc);
}

template <class T>
void solve_halves(bool lower, bool unit, int64_t n, int64_t m, const T* a, int64_t lda, T* b, int64_t ldb) {
  if (n <= kSmallTriangle) return RUNNEL_BEST_ISA(solve_rows<T>)(lower, unit, n, m, a, lda, b, ldb);
  const int64_t top = half_of(n, kSmallTriangle), rest = n - top;
  const T* last = a + top * lda + top;
  T* below = b + top * ldb;
  if (lower) {
    solve_halves(lower, unit, top, m, a, lda, b, ldb);
    subtract_product(false, rest, m, top, a + top * lda, lda, b, ldb, below, ldb);
    solve_halves(lower, unit, rest, m, last, lda, below, ldb);
  } else {
    solve_halves(lower, unit, rest, m, last, lda, below, ldb);
    subtract_product(false, top, m, rest, a + top, lda, below, ldb, b, ldb);
    solve_halves(lower, unit, top, m, a, lda, b, ldb);
  }
}

template <class T>
bool small_cholesky(int64_t n, T* a, int64_t lda) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      T sum = a[i * lda + j];
      for (int64_t p = 0; p < j; ++p) sum -= a[i * lda + p] * a[j * lda + p];
      if (i != j) {
        a[i * lda + j] = sum / a[j * lda + j];
      } else if (sum > 0) {
        a[i * lda + i] = std::sqrt(sum);
      } else {
        return false;
      }
    }
  }
  return true;
}

// X[m,n] with X * transpose(L) = B, in place; b and l are parts of one matrix.
template <class T>
void solve_from_right(int64_t m, int64_t n, const T* l, int64_t ldl, T* b, int64_t ldb) {
  if (n > kSmallTriangle) {
    const int64_t left = half_of(n, kSmallTriangle);
    solve_from_right(m, left, l, ldl, b, ldb);
    subtract_product(true, m, n - left, left, b, ldb, l + left * ldl, ldl, b + left, ldb);
    return solve_from_right(m, n - left, l + left * ldl + left, ldl, b + left, ldb);
  }
  // Columns of B as rows: solved with L itself.
  ScratchFrame frame;
  T* columns = frame.get<T>(n * m);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) columns[j * m + i] = b[i * ldb + j];
  }
  RUNNEL_BEST_ISA(solve_rows<T>)(true, false, n, m, l, ldl, columns, m);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) b[i * ldb + j] = columns[j * m + i];
  }
}

template <class T>
bool cholesky_halves(int64_t n, T* a, int64_t lda) {
  if (n <= kSmallTriangle) return small_cholesky(n, a, lda);
  const int64_t top = half_of(n, kSmallTriangle), rest = n - top;
  T *below = a + top * lda, *last = below + top;
  if (!cholesky_halves(top, a, lda)) return false;
  solve_from_right(rest, top, a, lda, below, lda);
  // The lower triangle alone, in strips.
  constexpr int64_t kStrip = 128;
  for (int64_t i = 0; i < rest; i += kStrip) {
    const int64_t rows = std::min(kStrip, rest - i);
    subtract_product(true, rows, i + rows, top, below + i * lda, lda, below, lda, last + i * lda, lda);
  }
  return cholesky_halves(rest, last, lda);
}

template <class T>
void swap_rows(int64_t from, int64_t to, const int32_t* swaps, int64_t columns, T* a, int64_t lda) {
  for (int64_t k = from; k < to; ++k) {
    if (swaps[k] != k) std::swap_ranges(a + k * lda, a + k * lda + columns, a + swaps[k] * lda);
  }
}

// Of m rows and n columns, at most as many; swaps are of these rows.
template <class T>
void lu_halves(int64_t m, int64_t n, T* a, int64_t lda, int32_t* swaps) {
  if (n <= kSmallColumns) return RUNNEL_BEST_ISA(lu_columns<T>)(m, n, a, lda, swaps);
  const int64_t left = half_of(n, kSmallColumns), right = n - left;
  lu_halves(m, left, a, lda, swaps);
  swap_rows(0, left, swaps, right, a + left, lda);
  solve_halves(true, true, left, right, a, lda, a + left, lda);
  T* last = a + left * lda + left;
  subtract_product(false, m - left, right, left, a + left * lda, lda, a + left, lda, last, lda);
  lu_halves(m - left, right, last, lda, swaps + left);
  for (int64_t k = left; k < n; ++k) swaps[k] += static_cast<int32_t>(left);
  swap_rows(left, n, swaps, left, a, lda);
}

// The reflection I - tau * v * transpose(v) that leaves of x its first element alone: v replaces x, its first element
// counts as 1 and holds what is left. Gives tau.
template <class T>
T reflection(int64_t n, T* x) {
  const Reflection<T> r = reflection_of(n, x, n > 1 ? RUNNEL_BEST_ISA(dot<T>)(n - 1, x + 1, x + 1) : T(0));
  if (r.tau == 0) return 0;
  const double size = std::abs(r.divisor);
  if (size > 1e-30 && size < 1e30) {  // the inverse is a normal number
    RUNNEL_BEST_ISA(scale<T>)(n - 1, static_cast<T>(1 / r.divisor), x + 1);
  } else {
    for (int64_t i = 1; i < n; ++i) x[i] = static_cast<T>(x[i] / r.divisor);
  }
  x[0] = r.left;
  return r.tau;
}

}  // namespace

template <class T>
Reflections<T>::Reflections(ScratchFrame& frame, int64_t k, int64_t m, const T* w, int64_t ldw, const T* tau)
    : k(k), m(m), v(frame.get<T>(k * m)), t(frame.get<T>(k * k)) {
  for (int64_t i = 0; i < k; ++i) {
    T* row = v + i * m;
    std::fill_n(row, i, T(0));
    row[i] = 1;
    std::copy_n(w + i * ldw + i + 1, m - i - 1, row + i + 1);
  }
  T* products = frame.get<T>(k * k);
  product(false, true, k, k, m, T(1), v, m, v, m, T(0), products, k);
  std::fill_n(t, k * k, T(0));
  for (int64_t j = 0; j < k; ++j) {
    t[j * k + j] = tau[j];
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t p = i; p < j; ++p) sum += t[i * k + p] * products[p * k + j];
      t[i * k + j] = -tau[j] * sum;
    }
  }
}

template <class T>
void Reflections<T>::apply(bool transposed, int64_t rows, T* x, int64_t ldx) const {
  ScratchFrame frame;
  T *dots = frame.get<T>(rows * k), *mixed = frame.get<T>(rows * k);
  product(false, true, rows, k, m, T(1), x, ldx, v, m, T(0), dots, k);
  product(false, transposed, rows, k, k, T(1), dots, k, t, k, T(0), mixed, k);
  product(false, false, rows, m, k, T(-1), mixed, k, v, m, T(1), x, ldx);
}

template <class T>
void solve_triangular(bool lower, bool unit, int64_t n, int64_t m, const T* a, int64_t lda, T* b, int64_t ldb) {
  // Columns are apart; each task has enough of them for fast products.
  const int64_t grain = n < 2 * kSmallTriangle ? m : std::max<int64_t>(64, (m / 8 + 15) / 16 * 16);
  parallel_for(m, std::max<int64_t>(1, grain),
               [&](int64_t begin, int64_t end) { solve_halves(lower, unit, n, end - begin, a, lda, b + begin, ldb); });
}

template <class T>
bool cholesky(int64_t n, T* a, int64_t lda) {
  if (!cholesky_halves(n, a, lda)) return false;
  for (int64_t i = 0; i < n; ++i) std::fill(a + i * lda + i + 1, a + i * lda + n, T(0));
  return true;
}

template <class T>
bool lu(int64_t n, T* a, int64_t lda, int32_t* swaps) {
  lu_halves(n, n, a, lda, swaps);
  bool odd = false;
  for (int64_t k = 0; k < n; ++k) odd ^= swaps[k] != k;
  return odd;
}

template <class T>
void qr(int64_t m, int64_t n, int64_t k, T* a, T* q, T* r) {
  const int64_t most = std::min(m, n);
  ScratchFrame frame;
  T* tau = frame.get<T>(most);
  for (int64_t j = 0; j < most; j += kReflections) {
    const int64_t width = std::min(kReflections, most - j), length = m - j;
    for (int64_t i = j; i < j + width; ++i) {
      T* x = a + i * m + i;
      tau[i] = reflection(m - i, x);
      const T first = std::exchange(x[0], T(1));
      for (int64_t c = i + 1; c < j + width; ++c) {
        T* y = a + c * m + i;
        RUNNEL_BEST_ISA(axpy<T>)(m - i, -tau[i] * RUNNEL_BEST_ISA(dot<T>)(m - i, x, y), x, y);
      }
      x[0] = first;
    }
    if (j + width < n) {
      ScratchFrame inner;
      // A row x of the rest, a column of A, becomes transpose(H) * x.
      Reflections<T>(inner, width, length, a + j * m + j, m, tau + j)
          .apply(false, n - j - width, a + (j + width) * m + j, m);
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = i <= j ? a[j * m + i] : T(0);
  }
  for (int64_t i = 0; i < k; ++i) {
    std::fill_n(q + i * m, m, T(0));
    q[i * m + i] = 1;
  }
  for (int64_t j = (most - 1) / kReflections * kReflections; j >= 0 && most > 0; j -= kReflections) {
    const int64_t width = std::min(kReflections, most - j);
    ScratchFrame inner;
    Reflections<T>(inner, width, m - j, a + j * m + j, m, tau + j).apply(true, k - j, q + j * m + j, m);
  }
}

#define RUNNEL_DENSE(T)                                                                                    \
  template struct Reflections<T>;                                                                          \
  template RUNNEL_API void solve_triangular(bool, bool, int64_t, int64_t, const T*, int64_t, T*, int64_t); \
  template RUNNEL_API bool cholesky(int64_t, T*, int64_t);                                                 \
  template RUNNEL_API bool lu(int64_t, T*, int64_t, int32_t*);                                             \
  template RUNNEL_API void qr(int64_t, int64_t, int64_t, T*, T*, T*);
RUNNEL_DENSE(float)
RUNNEL_DENSE(double)

}  // namespace runnel::cpu
