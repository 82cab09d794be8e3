#pragma once

// Factorisations of one matrix. They run in double precision whatever the tensor holds: float32 results are then
// correctly rounded but for the last bit, and Eigen's code, which takes a minute to compile, exists twice, not four
// times.
#include "runnel/ops/linalg_kernels.h"

namespace runnel {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, RealOf<T>>, double, std::complex<double>>;

// W is double or std::complex<double>.
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
