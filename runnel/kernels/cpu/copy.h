#pragma once

// Copies between strided arrays: what slices, joins, transposes, tiles, pads and reversals are made of.

#include <cstdint>
#include <span>

#include "runnel/base/export.h"
#include "runnel/tensor/dtype.h"
#include "runnel/tensor/shape.h"

namespace runnel::cpu {

// to[sum i*to_strides] = from[sum i*from_strides] for every index i within `dims`. Strides count elements; those of
// the source may be zero (the element repeats) or negative. Source and target must not overlap. Large copies run on
// the compute pool.
RUNNEL_API void copy_strided(DType dtype, std::span<const int64_t> dims, const void* from,
                             std::span<const int64_t> from_strides, void* to, std::span<const int64_t> to_strides);

// n elements one after the other.
RUNNEL_API void copy_elements(DType dtype, const void* from, void* to, int64_t n);

// to[a * to_stride + b] = from[b * from_stride + a] for a in [0, n), b in [0, m), on the calling thread.
void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t n, int64_t m);

// The address `elements` after `base`.
inline const void* element_at(const void* base, DType dtype, int64_t elements) {
  return static_cast<const char*>(base) + elements * static_cast<int64_t>(dtype_size(dtype));
}
inline void* element_at(void* base, DType dtype, int64_t elements) {
  return static_cast<char*>(base) + elements * static_cast<int64_t>(dtype_size(dtype));
}

// Strides of a dense row-major array.
RUNNEL_API runnel::Dims dense_strides(std::span<const int64_t> dims);

}  // namespace runnel::cpu
