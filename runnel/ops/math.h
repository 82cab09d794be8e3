#pragma once

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"

namespace runnel {

// Elementwise functions. Operands broadcast and share a dtype; literals take the tensor's. Arithmetic of integers
// wraps around. See operators.h for add, subtract, multiply, divide, floormod, negative and the comparisons, which
// are what + - * / % < <= > >= call.

// Arithmetic. divide is true division: integers become floating (float64, or float32 from 8 and 16 bits).
// Dividing an integer by zero with the others is an Error.
RUNNEL_API Tensor maximum(const Operand& x, const Operand& y);
RUNNEL_API Tensor minimum(const Operand& x, const Operand& y);
RUNNEL_API Tensor square(const Operand& x);
RUNNEL_API Tensor squared_difference(const Operand& x, const Operand& y);
RUNNEL_API Tensor abs(const Operand& x);   // the modulus of complex numbers, as real ones
RUNNEL_API Tensor sign(const Operand& x);  // x / |x| of complex numbers
RUNNEL_API Tensor add_n(const OperandList& inputs);
RUNNEL_API Tensor realdiv(const Operand& x, const Operand& y);
RUNNEL_API Tensor floordiv(const Operand& x, const Operand& y);  // // of Python; % is floormod
RUNNEL_API Tensor truncatediv(const Operand& x, const Operand& y);
RUNNEL_API Tensor truncatemod(const Operand& x, const Operand& y);
RUNNEL_API Tensor divide_no_nan(const Operand& x, const Operand& y);    // 0 where y is 0
RUNNEL_API Tensor multiply_no_nan(const Operand& x, const Operand& y);  // 0 where y is 0, even if x is not finite
RUNNEL_API Tensor xdivy(const Operand& x, const Operand& y);            // 0 where x is 0
// The bounds broadcast to the shape of t.
RUNNEL_API Tensor clip_by_value(const Operand& t, const Operand& clip_value_min, const Operand& clip_value_max);

// Powers, exponentials and logarithms.
RUNNEL_API Tensor exp(const Operand& x);
RUNNEL_API Tensor expm1(const Operand& x);
RUNNEL_API Tensor log(const Operand& x);
RUNNEL_API Tensor log1p(const Operand& x);
RUNNEL_API Tensor sqrt(const Operand& x);
RUNNEL_API Tensor rsqrt(const Operand& x);
RUNNEL_API Tensor reciprocal(const Operand& x);
RUNNEL_API Tensor tanh(const Operand& x);
RUNNEL_API Tensor sigmoid(const Operand& x);

// Comparisons, of any dtypes but handles: bool tensors.
RUNNEL_API Tensor equal(const Operand& x, const Operand& y);
RUNNEL_API Tensor not_equal(const Operand& x, const Operand& y);

RUNNEL_API Tensor is_nan(const Operand& x);
RUNNEL_API Tensor is_inf(const Operand& x);
RUNNEL_API Tensor is_finite(const Operand& x);

RUNNEL_API Tensor logical_and(const Operand& x, const Operand& y);
RUNNEL_API Tensor logical_or(const Operand& x, const Operand& y);
RUNNEL_API Tensor logical_xor(const Operand& x, const Operand& y);
RUNNEL_API Tensor logical_not(const Operand& x);

// Another dtype: floating values lose their fraction when they become integers, complex ones their imaginary part.
RUNNEL_API Tensor cast(const Operand& x, DType dtype);
// The same bytes read as another dtype; a smaller one adds a last dimension, a larger one takes it away.
RUNNEL_API Tensor bitcast(const Operand& input, DType type);

// x where the condition holds, y elsewhere; all three broadcast.
RUNNEL_API Tensor where(const Operand& condition, const Operand& x, const Operand& y);
// The indices of the elements that are not zero, one row each: int64 [n, rank].
RUNNEL_API Tensor where(const Operand& condition);

RUNNEL_API Tensor conj(const Operand& x);  // real tensors pass unchanged

struct MatMulOptions {
  bool transpose_a = false, transpose_b = false;
  bool adjoint_a = false, adjoint_b = false;  // conjugated and transposed
};
// The product of the matrices in the last two dimensions; leading dimensions broadcast.
RUNNEL_API Tensor matmul(const Operand& a, const Operand& b, const MatMulOptions& options = {});

}  // namespace runnel
