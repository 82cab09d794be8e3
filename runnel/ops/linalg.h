#pragma once

#include <string>
#include <vector>

#include "runnel/op/operand.h"

// Linear algebra on the matrices in the last two dimensions; leading dimensions are a batch.
namespace runnel::linalg {

// The inverse (of the adjoint, if asked). A singular matrix is an Error.
RUNNEL_API Tensor inv(const Operand& input, bool adjoint = false);
RUNNEL_API Tensor det(const Operand& input);
struct SlogdetResult {
  Tensor sign, log_abs_det;
};
RUNNEL_API SlogdetResult slogdet(const Operand& input);
// The logarithm of the determinant of a Hermitian positive definite matrix.
RUNNEL_API Tensor logdet(const Operand& matrix);

// Of vectors of 3 elements, the last dimension.
RUNNEL_API Tensor cross(const Operand& a, const Operand& b);

// X with matrix * X = rhs (adjoint(matrix) * X = rhs, if asked).
RUNNEL_API Tensor solve(const Operand& matrix, const Operand& rhs, bool adjoint = false);
// The same for a triangular matrix; the other triangle is not read. Batches broadcast. A zero on the diagonal is no
// Error: it divides.
RUNNEL_API Tensor triangular_solve(const Operand& matrix, const Operand& rhs, bool lower = true, bool adjoint = false);

// X with the smallest |matrix * X - rhs|^2 + l2_regularizer * |X|^2 (and of several the smallest X). The fast way goes
// by Cholesky's factor of adjoint(matrix) * matrix, which wants full rank; the other one by singular values, without
// regularizer.
RUNNEL_API Tensor lstsq(const Operand& matrix, const Operand& rhs, double l2_regularizer = 0, bool fast = true);

// Lower triangular L with L * adjoint(L) = input, NaN where input is not positive definite; only the lower triangle of
// the input is read.
RUNNEL_API Tensor cholesky(const Operand& input);
// X with A * X = rhs, given the Cholesky factor of A.
RUNNEL_API Tensor cholesky_solve(const Operand& chol, const Operand& rhs);

struct LuResult {
  Tensor lu;  // the unit lower triangle's rest and the upper triangle in one matrix
  Tensor p;   // gather(input, p) = L * U
};
RUNNEL_API LuResult lu(const Operand& input, DType output_idx_type = DType::int32);

struct QrResult {
  Tensor q, r;
};
RUNNEL_API QrResult qr(const Operand& input, bool full_matrices = false);

struct SvdResult {
  Tensor s, u, v;  // input = u * diag(s) * adjoint(v), s real and descending; all NaN where input is not finite
};
RUNNEL_API SvdResult svd(const Operand& tensor, bool full_matrices = false);
RUNNEL_API Tensor svdvals(const Operand& tensor);

struct EighResult {
  Tensor e, v;  // input = v * diag(e) * adjoint(v), e ascending
};
// Of a Hermitian matrix; only its lower triangle is read.
RUNNEL_API EighResult eigh(const Operand& tensor);
RUNNEL_API Tensor eigvalsh(const Operand& tensor);

RUNNEL_API Tensor matrix_transpose(const Operand& a);
RUNNEL_API Tensor adjoint(const Operand& matrix);  // the conjugate transpose
RUNNEL_API Tensor trace(const Operand& x);
// matmul of matrices and vectors.
RUNNEL_API Tensor matvec(const Operand& a, const Operand& b);

}  // namespace runnel::linalg
