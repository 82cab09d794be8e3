#include <algorithm>
#include <limits>

#include "runnel/ops/linalg_factor.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

template <class W>
QrFactors<W> qr_factors(const Matrix<W>& x, int64_t columns_of_q) {
  const Eigen::HouseholderQR<Matrix<W>> qr(x);
  return {qr.householderQ() * Matrix<W>::Identity(x.rows(), columns_of_q),
          qr.matrixQR().topRows(columns_of_q).template triangularView<Eigen::Upper>()};
}

// The singular values of a tall matrix are those of its R; Eigen's own step before the rotations knows every kind of
// pivoting and takes four times as long to compile.
template <class W>
SvdFactors<W> svd_factors(const Matrix<W>& x, bool compute_uv, bool full_matrices) {
  if (!x.allFinite()) {
    const Eigen::Index k = std::min(x.rows(), x.cols());
    const auto nan = [](Eigen::Index rows, Eigen::Index cols) -> Matrix<W> {
      return Matrix<W>::Constant(rows, cols, W(std::numeric_limits<double>::quiet_NaN()));
    };
    SvdFactors<W> none{nan(k, 1).real(), {}, {}};
    if (compute_uv) {
      none.u = nan(x.rows(), full_matrices ? x.rows() : k);
      none.v = nan(x.cols(), full_matrices ? x.cols() : k);
    }
    return none;
  }
  if (x.rows() < x.cols()) {
    SvdFactors<W> of_adjoint = svd_factors<W>(x.adjoint(), compute_uv, full_matrices);
    std::swap(of_adjoint.u, of_adjoint.v);
    return of_adjoint;
  }
  const QrFactors<W> qr = qr_factors(x, compute_uv && full_matrices ? x.rows() : x.cols());
  const unsigned parts = compute_uv ? Eigen::ComputeFullU | Eigen::ComputeFullV : 0;
  const Eigen::JacobiSVD<Matrix<W>, Eigen::NoQRPreconditioner> svd(qr.r.topRows(x.cols()), parts);
  if (!compute_uv) return {svd.singularValues(), {}, {}};
  Matrix<W> u = qr.q;
  u.leftCols(x.cols()) = qr.q.leftCols(x.cols()) * svd.matrixU();
  return {svd.singularValues(), std::move(u), svd.matrixV()};
}

template <class W>
EighFactors<W> eigh_factors(const Matrix<W>& x, bool compute_v) {
  const Eigen::SelfAdjointEigenSolver<Matrix<W>> solver(
      x, compute_v ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) throw invalid_argument("the eigenvalues did not converge");
  if (!compute_v) return {solver.eigenvalues(), {}};
  return {solver.eigenvalues(), solver.eigenvectors()};
}

template QrFactors<double> qr_factors(const Matrix<double>&, int64_t);
template QrFactors<std::complex<double>> qr_factors(const Matrix<std::complex<double>>&, int64_t);
template SvdFactors<double> svd_factors(const Matrix<double>&, bool, bool);
template SvdFactors<std::complex<double>> svd_factors(const Matrix<std::complex<double>>&, bool, bool);
template EighFactors<double> eigh_factors(const Matrix<double>&, bool);
template EighFactors<std::complex<double>> eigh_factors(const Matrix<std::complex<double>>&, bool);

}  // namespace runnel
