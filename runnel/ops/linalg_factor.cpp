#include "runnel/ops/linalg_factor.h"

namespace runnel {

template <class W>
QrFactors<W> qr_factors(const Matrix<W>& x, int64_t columns_of_q) {
  const Eigen::HouseholderQR<Matrix<W>> qr(x);
  return {qr.householderQ() * Matrix<W>::Identity(x.rows(), columns_of_q),
          qr.matrixQR().topRows(columns_of_q).template triangularView<Eigen::Upper>()};
}

template <class W>
SvdFactors<W> svd_factors(const Matrix<W>& x, bool compute_uv, bool full_matrices) {
  if (!compute_uv) return {Eigen::JacobiSVD<Matrix<W>>(x).singularValues(), {}, {}};
  const unsigned full = Eigen::ComputeFullU | Eigen::ComputeFullV;
  const unsigned thin = Eigen::ComputeThinU | Eigen::ComputeThinV;
  const Eigen::JacobiSVD<Matrix<W>> svd(x, full_matrices ? full : thin);
  return {svd.singularValues(), svd.matrixU(), svd.matrixV()};
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
