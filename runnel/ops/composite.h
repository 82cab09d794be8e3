#pragma once

#include "runnel/op/operand.h"
#include "runnel/tensor/composite.h"

namespace runnel {

// The rows added up as a dense tensor.
RUNNEL_API Tensor to_dense(const IndexedSlices& slices, SourceSite where = SourceSite::current());

namespace sparse {

// Values at their indices, default_value (0 when not given) elsewhere. Indices must be within the shape, in order and
// without repetition unless validate_indices is false (then the last one wins).
RUNNEL_API Tensor to_dense(const SparseTensor& sp_input, const Tensor& default_value = {}, bool validate_indices = true,
                           SourceSite where = SourceSite::current());
// The elements that are not zero (not empty, for strings).
RUNNEL_API SparseTensor from_dense(const Operand& tensor);
// In row-major order of the indices.
RUNNEL_API SparseTensor reorder(const SparseTensor& sp_input, SourceSite where = SourceSite::current());
// Ones on the diagonal (square unless num_columns is given).
RUNNEL_API SparseTensor eye(int64_t num_rows, int64_t num_columns = -1, DType dtype = DType::float32,
                            SourceSite where = SourceSite::current());

}  // namespace sparse

namespace ragged {

// Lists as a ragged tensor: ragged::constant<int>({{1, 2}, {3}}).
template <Element T>
RaggedTensor constant(std::initializer_list<std::initializer_list<T>> rows) {
  return RaggedTensor::of<T>(rows);
}
template <Element T>
RaggedTensor constant(std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows) {
  return RaggedTensor::of<T>(rows);
}

}  // namespace ragged
}  // namespace runnel
