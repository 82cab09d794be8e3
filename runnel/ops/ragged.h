#pragma once

#include "runnel/op/operand.h"
#include "runnel/ops/composite.h"

// Ragged tensors made of others. What a ragged tensor can do by itself are its methods (tensor/composite.h).
namespace runnel::ragged {

// A row start, start + delta, ... below limit for each start, limit and delta; scalars go with every row.
RUNNEL_API RaggedTensor range(const Operand& starts, const Operand& limits, const Operand& deltas = 1,
                              DType row_splits_dtype = DType::int64);
// The rows that the indices name, in the shape of the indices.
RUNNEL_API RaggedTensor gather(const RaggedTensor& params, const Operand& indices);

// The rows of values, each with the number of the row it belongs to; the numbers never fall. nrows rows, or as many as
// the last number needs.
RUNNEL_API RaggedTensor from_value_rowids(const Tensor& values, const Tensor& value_rowids, const Tensor& nrows = {},
                                          SourceSite where = SourceSite::current());
// A sparse matrix whose rows have no gaps, and back.
RUNNEL_API RaggedTensor from_sparse(const SparseTensor& st_input, SourceSite where = SourceSite::current());
RUNNEL_API SparseTensor to_sparse(const RaggedTensor& ragged, SourceSite where = SourceSite::current());

}  // namespace runnel::ragged
