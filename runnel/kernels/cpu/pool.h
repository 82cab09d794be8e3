#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// Pooling over 2 or 3 spatial dimensions (the first `dims` entries count) of [batch, spatial..., channels]. Padding is
// never part of a window: a maximum ignores it and an average divides by the cells that are there.
struct PoolShape {
  using Dims = std::array<int64_t, 3>;
  int dims = 2;
  int64_t batch = 0, channels = 0;
  Dims in{}, kernel{1, 1, 1}, stride{1, 1, 1}, pad_before{}, pad_after{};

  int64_t out(int d) const {
    return std::max<int64_t>(0, (in[d] + pad_before[d] + pad_after[d] - kernel[d] + stride[d]) / stride[d]);
  }
  int64_t in_size() const {
    int64_t n = batch * channels;
    for (int d = 0; d < dims; ++d) n *= in[d];
    return n;
  }
  int64_t out_size() const {
    int64_t n = batch * channels;
    for (int d = 0; d < dims; ++d) n *= out(d);
    return n;
  }
};

// A NaN in a window is its maximum. A window that is all padding gives the lowest value (average: 0).
// T: float, double, and every fixed-width integer.
template <class T>
RUNNEL_API void max_pool_forward(const PoolShape& shape, const T* x, T* y);
// The gradient of an output goes to the first cell of its window, in row-major order, that holds the maximum.
// T: as above.
template <class T>
RUNNEL_API void max_pool_backward(const PoolShape& shape, const T* x, const T* y, const T* dy, T* dx);
// T: float, double.
template <class T>
RUNNEL_API void avg_pool_forward(const PoolShape& shape, const T* x, T* y);
template <class T>
RUNNEL_API void avg_pool_backward(const PoolShape& shape, const T* dy, T* dx);

}  // namespace runnel::cpu
