#include "runnel/ops/linalg_large.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/dense.h"
#include "runnel/kernels/cpu/dense_reflections.h"
#include "runnel/kernels/cpu/dense_spectrum.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel {
namespace {

using cpu::ScratchFrame;

// to[columns, rows]
template <class T>
void transposed(int64_t rows, int64_t columns, const T* from, T* to) {
  constexpr int64_t kTile = 16;  // lines of both stay in the cache
  for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
    for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
      for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i) {
        for (int64_t j = j0; j < std::min(columns, j0 + kTile); ++j) to[j * rows + i] = from[i * columns + j];
      }
    }
  }
}

template <class T>
void copy_or_transpose(int64_t n, const T* from, bool transpose, T* to) {
  if (transpose) {
    transposed(n, n, from, to);
  } else {
    std::copy_n(from, n * n, to);
  }
}

// LU factors of one matrix, which must be invertible.
template <class T>
class LargeLu {
 public:
  LargeLu(int64_t n, const T* a, bool adjoint) : n_(n), lu_(frame_.get<T>(n * n)), swaps_(static_cast<size_t>(n)) {
    copy_or_transpose(n, a, adjoint, lu_);
    cpu::lu(n, lu_, n, swaps_.data());
    for (int64_t k = 0; k < n; ++k) {
      if (!(std::abs(lu_[k * n + k]) > 0)) throw invalid_argument("the matrix is not invertible");
    }
  }
  void solve(int64_t m, T* x) const {
    for (int64_t k = 0; k < n_; ++k) {
      const int64_t other = swaps_[static_cast<size_t>(k)];
      if (other != k) std::swap_ranges(x + k * m, x + (k + 1) * m, x + other * m);
    }
    cpu::solve_triangular(true, true, n_, m, lu_, n_, x, m);
    cpu::solve_triangular(false, false, n_, m, lu_, n_, x, m);
  }

 private:
  int64_t n_;
  ScratchFrame frame_;
  T* lu_;
  std::vector<int32_t> swaps_;
};

}  // namespace

template <class T>
void large_inverse(int64_t n, const T* a, bool adjoint, T* out) {
  const LargeLu<T> lu(n, a, adjoint);
  std::fill_n(out, n * n, T(0));
  for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1;
  lu.solve(n, out);
}

template <class T>
void large_solve(int64_t n, int64_t m, const T* a, bool adjoint, const T* rhs, T* out) {
  const LargeLu<T> lu(n, a, adjoint);
  std::copy_n(rhs, n * m, out);
  lu.solve(m, out);
}

template <class T>
void large_triangular_solve(int64_t n, int64_t m, const T* a, bool lower, bool adjoint, const T* rhs, T* out) {
  ScratchFrame frame;
  if (adjoint) {
    T* turned = frame.get<T>(n * n);
    transposed(n, n, a, turned);
    a = turned;
  }
  std::copy_n(rhs, n * m, out);
  cpu::solve_triangular(lower != adjoint, false, n, m, a, n, out, m);
}

template <class T>
void large_cholesky(int64_t n, const T* a, T* out) {
  std::copy_n(a, n * n, out);
  if (cpu::cholesky(n, out, n)) return;
  for (int64_t i = 0; i < n; ++i) {
    std::fill(out + i * n, out + i * n + i + 1, std::numeric_limits<T>::quiet_NaN());
    std::fill(out + i * n + i + 1, out + (i + 1) * n, T(0));
  }
}

template <class T>
void large_qr(int64_t m, int64_t n, int64_t k, const T* a, T* q, T* r) {
  ScratchFrame frame;
  T *turned = frame.get<T>(m * n), *turned_q = frame.get<T>(m * k);
  transposed(m, n, a, turned);
  cpu::qr(m, n, k, turned, turned_q, r);
  transposed(k, m, turned_q, q);
}

template <class T>
double large_lu(int64_t n, const T* a, T* out, int32_t* row_to) {
  std::copy_n(a, n * n, out);
  std::vector<int32_t> swaps(static_cast<size_t>(n)), order(static_cast<size_t>(n));
  const bool odd = cpu::lu(n, out, n, swaps.data());
  std::iota(order.begin(), order.end(), 0);
  for (size_t k = 0; k < swaps.size(); ++k) std::swap(order[k], order[static_cast<size_t>(swaps[k])]);
  for (size_t k = 0; k < order.size(); ++k) row_to[order[k]] = static_cast<int32_t>(k);
  return odd ? -1 : 1;
}

template <class T>
bool large_svd(int64_t m, int64_t n, const T* a, bool full, double* s, T* u, T* v) {
  ScratchFrame frame;
  if (m < n) {
    T* turned = frame.get<T>(m * n);
    transposed(m, n, a, turned);
    return large_svd(n, m, turned, full, s, v, u);
  }
  // The singular values of a tall matrix are those of its R.
  const int64_t k = u && full ? m : n;
  T *square = frame.get<T>(n * n), *q = nullptr;
  if (m == n) {
    std::copy_n(a, n * n, square);
  } else {
    q = frame.get<T>(m * k);
    T* r = frame.get<T>(k * n);
    large_qr(m, n, k, a, q, r);
    std::copy_n(r, n * n, square);
  }
  if (!u) return cpu::singular_values<T>(n, square, s, nullptr, nullptr);
  T *rows_u = frame.get<T>(n * n), *rows_v = frame.get<T>(n * n);
  if (!cpu::singular_values(n, square, s, rows_u, rows_v)) return false;
  transposed(n, n, rows_v, v);
  if (!q) {
    transposed(n, n, rows_u, u);
  } else {
    std::copy_n(q, m * k, u);  // with full matrices, more columns than those of R
    cpu::product(false, true, m, n, n, T(1), q, k, rows_u, n, T(0), u, k);
  }
  return true;
}

template <class T>
bool large_eigh(int64_t n, const T* a, double* e, T* v) {
  ScratchFrame frame;
  T *copy = frame.get<T>(n * n), *rows = v ? frame.get<T>(n * n) : nullptr;
  std::copy_n(a, n * n, copy);
  if (!cpu::symmetric_eigen(n, copy, e, rows)) return false;
  if (v) transposed(n, n, rows, v);
  return true;
}

#define RUNNEL_LARGE(T)                                                                       \
  template void large_inverse(int64_t, const T*, bool, T*);                                   \
  template void large_solve(int64_t, int64_t, const T*, bool, const T*, T*);                  \
  template void large_triangular_solve(int64_t, int64_t, const T*, bool, bool, const T*, T*); \
  template void large_cholesky(int64_t, const T*, T*);                                        \
  template void large_qr(int64_t, int64_t, int64_t, const T*, T*, T*);                        \
  template bool large_svd(int64_t, int64_t, const T*, bool, double*, T*, T*);                 \
  template bool large_eigh(int64_t, const T*, double*, T*);                                   \
  template double large_lu(int64_t, const T*, T*, int32_t*);
RUNNEL_LARGE(float)
RUNNEL_LARGE(double)

}  // namespace runnel
