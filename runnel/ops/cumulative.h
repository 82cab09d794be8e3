#pragma once

#include "runnel/op/operand.h"

namespace runnel {

// Running sums and products along an axis. `exclusive` leaves the element itself out (the first result is 0 or 1);
// `reverse` runs from the end.
RUNNEL_API Tensor cumsum(const Operand& x, const Operand& axis = 0, bool exclusive = false, bool reverse = false);
namespace math {
using runnel::cumsum;
RUNNEL_API Tensor cumprod(const Operand& x, const Operand& axis = 0, bool exclusive = false, bool reverse = false);
// log(cumsum(exp(x))), without overflow.
RUNNEL_API Tensor cumulative_logsumexp(const Operand& x, const Operand& axis = 0, bool exclusive = false,
                                       bool reverse = false);
}  // namespace math

}  // namespace runnel
