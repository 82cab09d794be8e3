#pragma once

#include "runnel/op/operand.h"

// Reductions over rows that share an id. The sorted forms take one id per row of `data`, in increasing order; row i of
// the result combines the rows with id i (0 where there are none, 1 for products). The unsorted forms take ids in any
// order, shaped like the leading dimensions of `data`, and the number of rows of the result; rows with a negative id
// are left out, and a row without any is 0, 1, the lowest or the highest value.
namespace runnel::math {

RUNNEL_API Tensor segment_sum(const Operand& data, const Operand& segment_ids);
RUNNEL_API Tensor segment_mean(const Operand& data, const Operand& segment_ids);
RUNNEL_API Tensor segment_max(const Operand& data, const Operand& segment_ids);
RUNNEL_API Tensor segment_min(const Operand& data, const Operand& segment_ids);
RUNNEL_API Tensor segment_prod(const Operand& data, const Operand& segment_ids);

RUNNEL_API Tensor unsorted_segment_sum(const Operand& data, const Operand& segment_ids, const Operand& num_segments);
RUNNEL_API Tensor unsorted_segment_mean(const Operand& data, const Operand& segment_ids, const Operand& num_segments);
RUNNEL_API Tensor unsorted_segment_max(const Operand& data, const Operand& segment_ids, const Operand& num_segments);
RUNNEL_API Tensor unsorted_segment_min(const Operand& data, const Operand& segment_ids, const Operand& num_segments);
RUNNEL_API Tensor unsorted_segment_prod(const Operand& data, const Operand& segment_ids, const Operand& num_segments);
// The sum divided by the square root of the number of rows.
RUNNEL_API Tensor unsorted_segment_sqrt_n(const Operand& data, const Operand& segment_ids, const Operand& num_segments);

}  // namespace runnel::math
