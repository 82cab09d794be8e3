#pragma once

// Factorisations of one matrix and solves with them. They run in double precision whatever the tensor holds: float32
// results are then correctly rounded but for the last bit, and Eigen's code, which takes long to compile, exists twice,
// not four times. Large float32 and float64 matrices go another way (linalg_large.h).
#include "runnel/ops/linalg_kernels.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, RealOf<T>>, double, std::complex<double>>;

template <class T>
Matrix<Wide<T>> wide_matrix_at(const Tensor& t, int64_t i) {
  return matrix_at<T>(t, i).template cast<Wide<T>>();
}

// W is double or std::complex<double> from here on.
template <class W>
struct LuFactors {
  Matrix<W> lu;             // L below the diagonal, which is 1 there, and U
  Eigen::VectorXi row_to;   // row k of the input is row row_to[k] of L * U
  double sign_of_rows = 1;  // the determinant of that permutation
  // Throws where a pivot is zero.
  void require_regular() const;
  Matrix<W> solve(const Matrix<W>& rhs) const;
};
template <class W>
LuFactors<W> lu_factors(const Matrix<W>& x);

// The x with a * x = rhs; the other triangle of `a` is not read. A zero on the diagonal divides like one.
template <class W>
Matrix<W> solve_triangular(const Matrix<W>& a, Matrix<W> rhs, bool lower);

// The lower L with L * adjoint(L) = x; NaN where x is not positive definite.
template <class W>
Matrix<W> cholesky_factor(const Matrix<W>& x);

template <class W>
struct QrFactors {
  Matrix<W> q, r;
};
template <class W>
QrFactors<W> qr_factors(const Matrix<W>& x, int64_t columns_of_q);

template <class W>
struct SvdFactors {
  Eigen::VectorXd s;
  Matrix<W> u, v;  // empty unless asked for
};
// All NaN where x has a number that is not finite.
template <class W>
SvdFactors<W> svd_factors(const Matrix<W>& x, bool compute_uv, bool full_matrices);

template <class W>
struct EighFactors {
  Eigen::VectorXd e;
  Matrix<W> v;  // empty unless asked for
};
// Reads the lower triangle.
template <class W>
EighFactors<W> eigh_factors(const Matrix<W>& x, bool compute_v);

}  // namespace runnel
