#pragma once

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"
#include "runnel/ops/reduce.h"

namespace runnel {

// Elementwise arithmetic. Operands broadcast and share a dtype; literals take the tensor's.
RUNNEL_API Tensor add(const Operand& x, const Operand& y);
RUNNEL_API Tensor subtract(const Operand& x, const Operand& y);
RUNNEL_API Tensor multiply(const Operand& x, const Operand& y);
RUNNEL_API Tensor negative(const Operand& x);
RUNNEL_API Tensor conj(const Operand& x);  // real tensors pass unchanged

inline Tensor operator+(const Operand& x, const Operand& y) { return add(x, y); }
inline Tensor operator-(const Operand& x, const Operand& y) { return subtract(x, y); }
inline Tensor operator*(const Operand& x, const Operand& y) { return multiply(x, y); }
inline Tensor operator-(const Operand& x) { return negative(x); }

struct MatMulOptions {
  bool transpose_a = false, transpose_b = false;
  bool adjoint_a = false, adjoint_b = false;  // conjugated and transposed
};
// The product of the matrices in the last two dimensions; leading dimensions broadcast.
RUNNEL_API Tensor matmul(const Operand& a, const Operand& b, const MatMulOptions& options = {});

}  // namespace runnel
