#include "runnel/ops/linalg_large.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/dense.h"
#include "runnel/kernels/cpu/dense_spectrum.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel {
namespace {

using cpu::ScratchFrame;

// to[columns, rows]
void transposed(int64_t rows, int64_t columns, const float* from, float* to) {
  constexpr int64_t kTile = 16;  // lines of both stay in the cache
  for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
    for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
      for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i) {
        for (int64_t j = j0; j < std::min(columns, j0 + kTile); ++j) to[j * rows + i] = from[i * columns + j];
      }
    }
  }
}

void copy_or_transpose(int64_t n, const float* from, bool transpose, float* to) {
  if (transpose) {
    transposed(n, n, from, to);
  } else {
    std::copy_n(from, n * n, to);
  }
}

// LU factors of one matrix, which must be invertible.
class LargeLu {
 public:
  LargeLu(int64_t n, const float* a, bool adjoint)
      : n_(n), lu_(frame_.get<float>(n * n)), swaps_(static_cast<size_t>(n)) {
    copy_or_transpose(n, a, adjoint, lu_);
    cpu::lu(n, lu_, n, swaps_.data());
    for (int64_t k = 0; k < n; ++k) {
      if (!(std::abs(lu_[k * n + k]) > 0)) throw invalid_argument("the matrix is not invertible");
    }
  }
  void solve(int64_t m, float* x) const {
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
  float* lu_;
  std::vector<int32_t> swaps_;
};

}  // namespace

void large_inverse(int64_t n, const float* a, bool adjoint, float* out) {
  const LargeLu lu(n, a, adjoint);
  std::fill_n(out, n * n, 0.0f);
  for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1;
  lu.solve(n, out);
}

void large_solve(int64_t n, int64_t m, const float* a, bool adjoint, const float* rhs, float* out) {
  const LargeLu lu(n, a, adjoint);
  std::copy_n(rhs, n * m, out);
  lu.solve(m, out);
}

void large_triangular_solve(int64_t n, int64_t m, const float* a, bool lower, bool adjoint, const float* rhs,
                            float* out) {
  ScratchFrame frame;
  if (adjoint) {
    float* turned = frame.get<float>(n * n);
    transposed(n, n, a, turned);
    a = turned;
  }
  std::copy_n(rhs, n * m, out);
  cpu::solve_triangular(lower != adjoint, false, n, m, a, n, out, m);
}

void large_cholesky(int64_t n, const float* a, float* out) {
  std::copy_n(a, n * n, out);
  if (cpu::cholesky(n, out, n)) return;
  for (int64_t i = 0; i < n; ++i) {
    std::fill(out + i * n, out + i * n + i + 1, std::numeric_limits<float>::quiet_NaN());
    std::fill(out + i * n + i + 1, out + (i + 1) * n, 0.0f);
  }
}

void large_qr(int64_t m, int64_t n, int64_t k, const float* a, float* q, float* r) {
  ScratchFrame frame;
  float *turned = frame.get<float>(m * n), *turned_q = frame.get<float>(m * k);
  transposed(m, n, a, turned);
  cpu::qr(m, n, k, turned, turned_q, r);
  transposed(k, m, turned_q, q);
}

double large_lu(int64_t n, const float* a, float* out, int32_t* row_to) {
  std::copy_n(a, n * n, out);
  std::vector<int32_t> swaps(static_cast<size_t>(n)), order(static_cast<size_t>(n));
  const bool odd = cpu::lu(n, out, n, swaps.data());
  std::iota(order.begin(), order.end(), 0);
  for (size_t k = 0; k < swaps.size(); ++k) std::swap(order[k], order[static_cast<size_t>(swaps[k])]);
  for (size_t k = 0; k < order.size(); ++k) row_to[order[k]] = static_cast<int32_t>(k);
  return odd ? -1 : 1;
}

bool large_svd(int64_t m, int64_t n, const float* a, bool full, double* s, float* u, float* v) {
  ScratchFrame frame;
  if (m < n) {
    float* turned = frame.get<float>(m * n);
    transposed(m, n, a, turned);
    return large_svd(n, m, turned, full, s, v, u);
  }
  // The singular values of a tall matrix are those of its R.
  const int64_t k = u && full ? m : n;
  float *square = frame.get<float>(n * n), *q = nullptr;
  if (m == n) {
    std::copy_n(a, n * n, square);
  } else {
    q = frame.get<float>(m * k);
    float* r = frame.get<float>(k * n);
    large_qr(m, n, k, a, q, r);
    std::copy_n(r, n * n, square);
  }
  if (!u) return cpu::singular_values(n, square, s, nullptr, nullptr);
  float *rows_u = frame.get<float>(n * n), *rows_v = frame.get<float>(n * n);
  if (!cpu::singular_values(n, square, s, rows_u, rows_v)) return false;
  transposed(n, n, rows_v, v);
  if (!q) {
    transposed(n, n, rows_u, u);
  } else {
    std::copy_n(q, m * k, u);  // with full matrices, more columns than those of R
    cpu::gemm_f32(false, true, m, n, n, 1.0f, q, k, rows_u, n, 0.0f, u, k);
  }
  return true;
}

bool large_eigh(int64_t n, const float* a, double* e, float* v) {
  ScratchFrame frame;
  float *copy = frame.get<float>(n * n), *rows = v ? frame.get<float>(n * n) : nullptr;
  std::copy_n(a, n * n, copy);
  if (!cpu::symmetric_eigen(n, copy, e, rows)) return false;
  if (v) transposed(n, n, rows, v);
  return true;
}

}  // namespace runnel
