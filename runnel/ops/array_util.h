#pragma once

// Shared by the array ops.
#include <optional>
#include <span>

#include "runnel/op/axes.h"
#include "runnel/op/context.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// The integers of a tensor whose value is known already (not traced).
inline std::optional<Dims> static_ints(const Tensor& t) {
  const Tensor* value = t.known_value();
  if (!value) return std::nullopt;
  return int_values(*value);
}

// Numbers and integer scalars as one vector: int32, or int64 where one needs it.
Tensor join_sizes(std::span<const ShapeSize> sizes, const SourceSite& where);

// The shape of x as an argument: its sizes where they are known, else the tensor that computes them.
ShapeArg shape_arg(const Tensor& x, const SourceSite& where = {});

// A vector of integers of the given dtype (int32 or int64).
Tensor constant_ints_of(const Dims& values, DType dtype);

// Gives index tensors that one op takes together one dtype: int64 where any of them has it.
void unify_index_types(std::span<Tensor> tensors);

// Input i as the sizes it spells out; every one must be >= 0 when their values are known.
PartialShape constant_sizes(const InferContext& c, int i);

// 0, 1, ..., n-1.
inline Dims iota_dims(int n) {
  Dims dims;
  for (int i = 0; i < n; ++i) dims.push_back(i);
  return dims;
}

}  // namespace runnel
