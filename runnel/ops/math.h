#pragma once

#include <string_view>

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"
#include "runnel/ops/cumulative.h"
#include "runnel/ops/einsum.h"
#include "runnel/ops/histogram.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"
#include "runnel/ops/segment.h"
#include "runnel/ops/sort.h"

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
RUNNEL_API Tensor truediv(const Operand& x, const Operand& y);   // divide
RUNNEL_API Tensor floordiv(const Operand& x, const Operand& y);  // // of Python; % is floormod
RUNNEL_API Tensor mod(const Operand& x, const Operand& y);       // floormod
RUNNEL_API Tensor truncatediv(const Operand& x, const Operand& y);
RUNNEL_API Tensor truncatemod(const Operand& x, const Operand& y);
RUNNEL_API Tensor divide_no_nan(const Operand& x, const Operand& y);    // 0 where y is 0
RUNNEL_API Tensor multiply_no_nan(const Operand& x, const Operand& y);  // 0 where y is 0, even if x is not finite
RUNNEL_API Tensor xdivy(const Operand& x, const Operand& y);            // 0 where x is 0
// The bounds broadcast to the shape of t.
RUNNEL_API Tensor clip_by_value(const Operand& t, const Operand& clip_value_min, const Operand& clip_value_max);

// Powers, exponentials and logarithms.
RUNNEL_API Tensor pow(const Operand& x, const Operand& y);  // integers to a negative power are an Error
RUNNEL_API Tensor exp(const Operand& x);
RUNNEL_API Tensor expm1(const Operand& x);
RUNNEL_API Tensor log(const Operand& x);
RUNNEL_API Tensor log1p(const Operand& x);
RUNNEL_API Tensor sqrt(const Operand& x);
RUNNEL_API Tensor rsqrt(const Operand& x);
RUNNEL_API Tensor reciprocal(const Operand& x);
RUNNEL_API Tensor sigmoid(const Operand& x);
RUNNEL_API Tensor xlogy(const Operand& x, const Operand& y);    // x log(y), 0 where x is 0
RUNNEL_API Tensor xlog1py(const Operand& x, const Operand& y);  // x log(1 + y), 0 where x is 0

// Trigonometric and hyperbolic functions.
RUNNEL_API Tensor sin(const Operand& x);
RUNNEL_API Tensor cos(const Operand& x);
RUNNEL_API Tensor tan(const Operand& x);
RUNNEL_API Tensor asin(const Operand& x);
RUNNEL_API Tensor acos(const Operand& x);
RUNNEL_API Tensor atan(const Operand& x);
RUNNEL_API Tensor atan2(const Operand& y, const Operand& x);
RUNNEL_API Tensor sinh(const Operand& x);
RUNNEL_API Tensor cosh(const Operand& x);
RUNNEL_API Tensor tanh(const Operand& x);
RUNNEL_API Tensor asinh(const Operand& x);
RUNNEL_API Tensor acosh(const Operand& x);
RUNNEL_API Tensor atanh(const Operand& x);

// Special functions.
RUNNEL_API Tensor erf(const Operand& x);
RUNNEL_API Tensor erfc(const Operand& x);
RUNNEL_API Tensor erfinv(const Operand& x);
RUNNEL_API Tensor lgamma(const Operand& x);
RUNNEL_API Tensor digamma(const Operand& x);
RUNNEL_API Tensor polygamma(const Operand& a, const Operand& x);  // order a; its gradient is that by x alone
RUNNEL_API Tensor zeta(const Operand& x, const Operand& q);       // its gradient is that by q alone

// Rounding: of halves, round and rint go to the even number.
RUNNEL_API Tensor floor(const Operand& x);
RUNNEL_API Tensor ceil(const Operand& x);
RUNNEL_API Tensor round(const Operand& x);
RUNNEL_API Tensor rint(const Operand& x);
RUNNEL_API Tensor nextafter(const Operand& x1, const Operand& x2);

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
RUNNEL_API Tensor cast(const Operand& x, std::string_view dtype);  // by its name: "float32"
// As cast, but values outside the range of the dtype become its nearest end.
RUNNEL_API Tensor saturate_cast(const Operand& value, DType dtype);
// The same bytes read as another dtype; a smaller one adds a last dimension, a larger one takes it away.
RUNNEL_API Tensor bitcast(const Operand& input, DType type);

// x where the condition holds, y elsewhere; all three broadcast.
RUNNEL_API Tensor where(const Operand& condition, const Operand& x, const Operand& y);
// The indices of the elements that are not zero, one row each: int64 [n, rank].
RUNNEL_API Tensor where(const Operand& condition);

// Complex numbers. Real tensors are taken as complex ones without imaginary part, and conj and real pass them on.
RUNNEL_API Tensor complex(const Operand& real, const Operand& imag);
RUNNEL_API Tensor conj(const Operand& x);
RUNNEL_API Tensor real(const Operand& input);
RUNNEL_API Tensor imag(const Operand& input);
RUNNEL_API Tensor angle(const Operand& input);

namespace math {
using runnel::abs;
using runnel::acos;
using runnel::acosh;
using runnel::add;
using runnel::add_n;
using runnel::angle;
using runnel::asin;
using runnel::asinh;
using runnel::atan;
using runnel::atan2;
using runnel::atanh;
using runnel::ceil;
using runnel::complex;
using runnel::conj;
using runnel::cos;
using runnel::cosh;
using runnel::digamma;
using runnel::divide;
using runnel::divide_no_nan;
using runnel::equal;
using runnel::erf;
using runnel::erfc;
using runnel::erfinv;
using runnel::exp;
using runnel::expm1;
using runnel::floor;
using runnel::floordiv;
using runnel::floormod;
using runnel::greater;
using runnel::greater_equal;
using runnel::imag;
using runnel::is_finite;
using runnel::is_inf;
using runnel::is_nan;
using runnel::less;
using runnel::less_equal;
using runnel::lgamma;
using runnel::log;
using runnel::log1p;
using runnel::logical_and;
using runnel::logical_not;
using runnel::logical_or;
using runnel::logical_xor;
using runnel::maximum;
using runnel::minimum;
using runnel::mod;
using runnel::multiply;
using runnel::multiply_no_nan;
using runnel::negative;
using runnel::nextafter;
using runnel::not_equal;
using runnel::polygamma;
using runnel::pow;
using runnel::real;
using runnel::reciprocal;
using runnel::rint;
using runnel::round;
using runnel::rsqrt;
using runnel::sigmoid;
using runnel::sign;
using runnel::sin;
using runnel::sinh;
using runnel::sqrt;
using runnel::square;
using runnel::squared_difference;
using runnel::subtract;
using runnel::tan;
using runnel::tanh;
using runnel::truediv;
using runnel::xdivy;
using runnel::xlog1py;
using runnel::xlogy;
using runnel::zeta;
}  // namespace math

struct MatMulOptions {
  bool transpose_a = false, transpose_b = false;
  bool adjoint_a = false, adjoint_b = false;  // conjugated and transposed
};
// The product of the matrices in the last two dimensions; leading dimensions broadcast.
RUNNEL_API Tensor matmul(const Operand& a, const Operand& b, const MatMulOptions& options = {});
namespace linalg {
using runnel::matmul;
}  // namespace linalg

}  // namespace runnel
