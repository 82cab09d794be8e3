#pragma once

#include <vector>

#include "runnel/op/operand.h"

namespace runnel {

// The rows of `data` sorted into num_partitions tensors: partitions, which covers the leading dimensions of data, names
// the one that each row goes to. Rows keep their order.
RUNNEL_API std::vector<Tensor> dynamic_partition(const Operand& data, const Operand& partitions,
                                                 int64_t num_partitions);
// One tensor of the rows of several: row i of data[m] becomes row indices[m][i] of the result; where an index comes
// more than once, the last one wins. The way back from dynamic_partition.
RUNNEL_API Tensor dynamic_stitch(const OperandList& indices, const OperandList& data);

// Blocks of block_shape elements of the spatial dimensions (those after the first, padded with zeros before and after)
// taken apart: each place of a block becomes an image of its own. And back, cropped.
RUNNEL_API Tensor space_to_batch(const Operand& input, const Operand& block_shape, const Operand& paddings);
RUNNEL_API Tensor batch_to_space(const Operand& input, const Operand& block_shape, const Operand& crops);

// The first seq_lengths[i] places of row i (of batch_axis) along seq_axis in reverse order; the others stay.
RUNNEL_API Tensor reverse_sequence(const Operand& input, const Operand& seq_lengths, int64_t seq_axis,
                                   int64_t batch_axis = 0);
struct ListDifference {
  Tensor out, idx;
};
// The elements of vector x that are not in y, in their order, and where they stand in x.
RUNNEL_API ListDifference setdiff1d(const Operand& x, const Operand& y, DType index_dtype = DType::int32);

// The diagonal of a tensor [dims..., dims...] with these elements, zeros elsewhere; and the elements of such a
// diagonal.
RUNNEL_API Tensor tensor_diag(const Operand& diagonal);
RUNNEL_API Tensor tensor_diag_part(const Operand& input);

}  // namespace runnel
