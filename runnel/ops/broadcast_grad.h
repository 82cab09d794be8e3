#pragma once

#include "runnel/tensor/tensor.h"

namespace runnel {

// The gradient of an operand that was broadcast: `dy` summed over the dimensions that were stretched, in the
// shape of `x`. Nothing happens when the shapes are equal.
Tensor sum_to_shape_of(const Tensor& dy, const Tensor& x);

}  // namespace runnel
