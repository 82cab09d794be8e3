#include "runnel/ops/string_kernels.h"

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/broadcast.h"

namespace runnel {

std::vector<int64_t> broadcast_positions(const Shape& operand, const Shape& out) {
  std::vector<int64_t> from(static_cast<size_t>(operand.num_elements()));
  std::vector<int64_t> to(static_cast<size_t>(out.num_elements()));
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int64_t>(i);
  cpu::broadcast_to(from.data(), operand.dims(), to.data(), out.dims(), sizeof(int64_t));
  return to;
}

RaggedTensor ragged_over(const PartialShape& outer, const Tensor& values, const Tensor& splits) {
  if (!outer.has_rank() || (outer.rank() > 1 && !outer.is_static())) {
    throw invalid_argument(
        "the rows of strings of shape {} are not known while a graph is built: give input_signature "
        "their sizes",
        outer.str());
  }
  RaggedTensor ragged = RaggedTensor::from_row_splits(values, splits);
  // Dimensions before the last are regular: each adds evenly spaced splits around what there is.
  for (int d = outer.rank() - 1; d > 0; --d) {
    int64_t rows = 1;
    for (int i = 0; i < d; ++i) rows *= outer[i];
    std::vector<int64_t> even;
    for (int64_t i = 0; i <= rows; ++i) even.push_back(i * outer[d]);
    ragged = RaggedTensor::from_row_splits(ragged, Tensor::of<int64_t>(even));
  }
  return ragged;
}

}  // namespace runnel
