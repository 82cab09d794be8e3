#pragma once

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"

namespace runnel {

// Same elements, another shape; one size may be -1 and is worked out.
RUNNEL_API Tensor reshape(const Operand& tensor, const ShapeArg& shape);
RUNNEL_API Tensor identity(const Operand& input);
RUNNEL_API Tensor broadcast_to(const Operand& input, const ShapeArg& shape);
RUNNEL_API Tensor shape(const Operand& input, DType out_type = DType::int32);
RUNNEL_API Tensor zeros_like(const Operand& input);
RUNNEL_API Tensor ones_like(const Operand& input);
RUNNEL_API Tensor fill(const ShapeArg& dims, const Operand& value);

// Tensors of one shape along a new axis; tensors joined along an existing one.
RUNNEL_API Tensor stack(const OperandList& values, int axis = 0);
RUNNEL_API Tensor concat(const OperandList& values, int axis);

// The rows of both, one after the other: their sum as IndexedSlices.
RUNNEL_API IndexedSlices merge_slices(const IndexedSlices& a, const IndexedSlices& b);

}  // namespace runnel
