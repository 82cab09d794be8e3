#pragma once

#include <string>

#include "runnel/op/operand.h"

// Checks of tensors: an Error with the message, the condition and the values where it does not hold. Ops: in a function
// they check whenever the function runs. What is known while it is traced (ranks, dtypes) is checked then.
namespace runnel::debugging {

struct AssertOptions {
  std::string message = {};
  int64_t summarize = 3;  // elements shown at either end of long dimensions; -1: all
};

// Of every pair of elements; the operands broadcast.
RUNNEL_API void assert_equal(const Operand& x, const Operand& y, const AssertOptions& options = {});
RUNNEL_API void assert_none_equal(const Operand& x, const Operand& y, const AssertOptions& options = {});
RUNNEL_API void assert_less(const Operand& x, const Operand& y, const AssertOptions& options = {});
RUNNEL_API void assert_less_equal(const Operand& x, const Operand& y, const AssertOptions& options = {});
RUNNEL_API void assert_greater(const Operand& x, const Operand& y, const AssertOptions& options = {});
RUNNEL_API void assert_greater_equal(const Operand& x, const Operand& y, const AssertOptions& options = {});
// |x - y| <= atol + rtol * |y|. Both are 10 times the dtype's epsilon unless given.
struct NearOptions {
  double rtol = -1;
  double atol = -1;
  std::string message = {};
  int64_t summarize = 3;
};
RUNNEL_API void assert_near(const Operand& x, const Operand& y, const NearOptions& options = {});

// Of every element.
RUNNEL_API void assert_positive(const Operand& x, const AssertOptions& options = {});
RUNNEL_API void assert_negative(const Operand& x, const AssertOptions& options = {});
RUNNEL_API void assert_non_negative(const Operand& x, const AssertOptions& options = {});
RUNNEL_API void assert_non_positive(const Operand& x, const AssertOptions& options = {});
// Neither NaN nor infinite. Gives x, so that it can stand inside an expression.
RUNNEL_API Tensor assert_all_finite(const Operand& x, const std::string& message = "");

RUNNEL_API void assert_rank(const Operand& x, int rank, const AssertOptions& options = {});
RUNNEL_API void assert_rank_at_least(const Operand& x, int rank, const AssertOptions& options = {});
RUNNEL_API void assert_scalar(const Operand& x, const AssertOptions& options = {});
RUNNEL_API void assert_type(const Operand& x, DType dtype, const AssertOptions& options = {});

}  // namespace runnel::debugging
