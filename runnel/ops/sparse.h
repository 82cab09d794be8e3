#pragma once

#include <vector>

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"
#include "runnel/ops/composite.h"

namespace runnel {
namespace sparse {

// The product of a sparse and a dense matrix. An adjoint is the transpose, of complex numbers the conjugate one.
RUNNEL_API Tensor sparse_dense_matmul(const SparseTensor& sp_a, const Operand& b, bool adjoint_a = false,
                                      bool adjoint_b = false, SourceSite where = SourceSite::current());
RUNNEL_API Tensor sparse_dense_matmul(const Operand& a, const SparseTensor& sp_b, bool adjoint_a = false,
                                      bool adjoint_b = false);

// The same elements in another shape; one size may be -1 and is worked out.
RUNNEL_API SparseTensor reshape(const SparseTensor& sp_input, const ShapeArg& shape);
// One after the other along an axis. The other sizes are the same, or expanded to the largest of them.
RUNNEL_API SparseTensor concat(int64_t axis, const std::vector<SparseTensor>& sp_inputs,
                               bool expand_nonconcat_dims = false, SourceSite where = SourceSite::current());

struct FilledRows {
  SparseTensor sp_ordered_output;
  Tensor empty_row_indicator;  // bool, for each row
};
// Every row without an element gets default_value in its first place; the rows then stand in order.
RUNNEL_API FilledRows fill_empty_rows(const SparseTensor& sp_input, const Operand& default_value,
                                      SourceSite where = SourceSite::current());

struct SparseCountOptions {
  Tensor weights = {};  // sums of these in place of counts
  int64_t axis = 0;     // 0: of all values; -1: of every row
  int64_t minlength = -1;
  int64_t maxlength = -1;
  bool binary_output = false;  // 1 for every value that appears
};
// How often values appear, as a sparse tensor: place i counts value i.
RUNNEL_API SparseTensor bincount(const Operand& values, const SparseCountOptions& options = {});

// The rows data[indices[i]] reduced to one for each segment: sums, means, and sums divided by the square root of how
// many there are. The segment ids increase; the result has num_segments rows, or as many as the last id needs.
RUNNEL_API Tensor segment_sum(const Operand& data, const Operand& indices, const Operand& segment_ids,
                              const Tensor& num_segments = {});
RUNNEL_API Tensor segment_mean(const Operand& data, const Operand& indices, const Operand& segment_ids,
                               const Tensor& num_segments = {});
RUNNEL_API Tensor segment_sqrt_n(const Operand& data, const Operand& indices, const Operand& segment_ids,
                                 const Tensor& num_segments = {});

}  // namespace sparse
}  // namespace runnel
