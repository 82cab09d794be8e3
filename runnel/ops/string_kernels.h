#pragma once

// Shared by the string families.
#include <vector>

#include "runnel/op/context.h"
#include "runnel/tensor/composite.h"

namespace runnel {

// out[i] = f(in[i]) for strings.
template <class F>
void for_each_string(KernelContext& c, F f) {
  for (int64_t i = 0; i < c.out().num_elements(); ++i) c.out<Bytes>()[i] = f(c.in<Bytes>(0)[i]);
}

// For each element of the broadcast shape `out`, the position of the operand's element that goes there.
std::vector<int64_t> broadcast_positions(const Shape& operand, const Shape& out);

// Rows of `values` cut by `splits`, one row per element of a tensor of shape `outer`: ragged in as many
// dimensions as that takes. In a graph, a matrix or more must have known sizes.
RaggedTensor ragged_over(const PartialShape& outer, const Tensor& values, const Tensor& splits);

}  // namespace runnel
