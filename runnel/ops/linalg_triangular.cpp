// LU and Cholesky factors and what solves with them.
#include <limits>

#include "runnel/ops/linalg_factor.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

template <class W>
LuFactors<W> lu_factors(const Matrix<W>& x) {
  const Eigen::PartialPivLU<Matrix<W>> lu(x);
  return {lu.matrixLU(), lu.permutationP().indices(), static_cast<double>(lu.permutationP().determinant())};
}

template <class W>
void LuFactors<W>::require_regular() const {
  if (lu.rows() > 0 && !(lu.diagonal().cwiseAbs().minCoeff() > 0.0)) {
    throw invalid_argument("the matrix is not invertible");
  }
}

template <class W>
Matrix<W> LuFactors<W>::solve(const Matrix<W>& rhs) const {
  Matrix<W> x(rhs.rows(), rhs.cols());
  for (Eigen::Index k = 0; k < rhs.rows(); ++k) x.row(row_to[k]) = rhs.row(k);
  lu.template triangularView<Eigen::UnitLower>().solveInPlace(x);
  lu.template triangularView<Eigen::Upper>().solveInPlace(x);
  return x;
}

template <class W>
Matrix<W> solve_triangular(const Matrix<W>& a, Matrix<W> rhs, bool lower) {
  if (lower) {
    a.template triangularView<Eigen::Lower>().solveInPlace(rhs);
  } else {
    a.template triangularView<Eigen::Upper>().solveInPlace(rhs);
  }
  return rhs;
}

template <class W>
Matrix<W> cholesky_factor(const Matrix<W>& x) {
  const Eigen::LLT<Matrix<W>, Eigen::Lower> llt(x);
  if (llt.info() == Eigen::Success) return llt.matrixL();
  Matrix<W> none = Matrix<W>::Zero(x.rows(), x.cols());
  none.template triangularView<Eigen::Lower>().setConstant(W(std::numeric_limits<double>::quiet_NaN()));
  return none;
}

template struct LuFactors<double>;
template struct LuFactors<std::complex<double>>;
template LuFactors<double> lu_factors(const Matrix<double>&);
template LuFactors<std::complex<double>> lu_factors(const Matrix<std::complex<double>>&);
template Matrix<double> solve_triangular(const Matrix<double>&, Matrix<double>, bool);
template Matrix<std::complex<double>> solve_triangular(const Matrix<std::complex<double>>&,
                                                       Matrix<std::complex<double>>, bool);
template Matrix<double> cholesky_factor(const Matrix<double>&);
template Matrix<std::complex<double>> cholesky_factor(const Matrix<std::complex<double>>&);

}  // namespace runnel
