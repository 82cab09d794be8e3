#pragma once

// Shared by the ops that reduce over axes.
#include "runnel/base/small_vector.h"
#include "runnel/op/axes.h"
#include "runnel/op/context.h"

namespace runnel {

// Which dimensions of a tensor of this rank are reduced; throws Error on an axis past the rank or named twice.
SmallVector<bool, 8> reduced_dims(const Dims& axes, int rank);

// The shape of `x` with the dimensions in `axes` set to 1; computed by ops where it is not known yet.
ShapeArg kept_shape(const Tensor& x, const Tensor& axes);

}  // namespace runnel
