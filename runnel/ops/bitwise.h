#pragma once

#include "runnel/op/operand.h"

namespace runnel::bitwise {

// Of integers of one dtype; operands broadcast. & | ^ ~ on integer tensors call these.
RUNNEL_API Tensor bitwise_and(const Operand& x, const Operand& y);
RUNNEL_API Tensor bitwise_or(const Operand& x, const Operand& y);
RUNNEL_API Tensor bitwise_xor(const Operand& x, const Operand& y);
RUNNEL_API Tensor invert(const Operand& x);
// Counts outside [0, width) are taken as the nearest end of it; right_shift keeps the sign.
RUNNEL_API Tensor left_shift(const Operand& x, const Operand& y);
RUNNEL_API Tensor right_shift(const Operand& x, const Operand& y);

}  // namespace runnel::bitwise
