#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runnel/base/export.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/tensor/half.h"

namespace runnel::cpu {

// A convolution over 2 or 3 spatial dimensions (the first `dims` entries of each array count). Activations are
// [batch, spatial..., channels], weights [kernel..., in_channels / groups, out_channels]; output channel o belongs to
// group o / (out_channels / groups). A depthwise filter [kernel..., in, multiplier] is the same memory with
// groups = in_channels and out_channels = in * multiplier.
struct ConvShape {
  using Dims = std::array<int64_t, 3>;
  int dims = 2;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Dims in{}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad_before{}, pad_after{};

  int64_t extent(int d) const { return (kernel[d] - 1) * dilation[d] + 1; }  // input cells a kernel spans
  int64_t out(int d) const {
    return std::max<int64_t>(0, (in[d] + pad_before[d] + pad_after[d] - extent(d) + stride[d]) / stride[d]);
  }
  int64_t in_size() const { return batch * spatial(in) * in_channels; }
  int64_t out_size() const { return batch * out_spatial() * out_channels; }
  int64_t weight_size() const { return taps() * (groups ? in_channels / groups : 0) * out_channels; }
  int64_t taps() const { return spatial(kernel); }
  int64_t out_spatial() const {
    int64_t n = 1;
    for (int d = 0; d < dims; ++d) n *= out(d);
    return n;
  }
  int64_t spatial(const Dims& size) const {
    int64_t n = 1;
    for (int d = 0; d < dims; ++d) n *= size[d];
    return n;
  }
};

// float32, on oneDNN where it has a fast implementation and on the plain kernels elsewhere. Results depend on the shape
// and the machine's instruction set, not on the number of threads. backward_data is also the transposed convolution.
RUNNEL_API void conv_forward(const ConvShape& shape, const float* x, const float* w, float* y,
                             const Epilogue& epilogue = {});
// The same with weights that were rearranged before: packed has room for conv_packed_size floats, which is 0 where
// there is nothing to rearrange.
RUNNEL_API int64_t conv_packed_size(const ConvShape& shape);
RUNNEL_API void conv_pack(const ConvShape& shape, const float* w, float* packed);
RUNNEL_API void conv_forward_packed(const ConvShape& shape, const float* x, const float* packed, float* y,
                                    const Epilogue& epilogue = {});
RUNNEL_API void conv_backward_data(const ConvShape& shape, const float* dy, const float* w, float* dx);
RUNNEL_API void conv_backward_weights(const ConvShape& shape, const float* x, const float* dy, float* dw);

// The same of bfloat16 where the CPU multiplies it itself: summed in float32, rounded once. None of the tensors is
// empty. False where the way through float32 is faster or the only one; then nothing was written.
RUNNEL_API bool conv_forward_bf16(const ConvShape& shape, const BFloat16* x, const BFloat16* w, BFloat16* y);
RUNNEL_API bool conv_backward_data_bf16(const ConvShape& shape, const BFloat16* dy, const BFloat16* w, BFloat16* dx);
RUNNEL_API bool conv_backward_weights_bf16(const ConvShape& shape, const BFloat16* x, const BFloat16* dy, BFloat16* dw);

// Plain kernels for float, double and int32_t.
template <class T>
RUNNEL_API void conv_forward_plain(const ConvShape& shape, const T* x, const T* w, T* y);
template <class T>
RUNNEL_API void conv_backward_data_plain(const ConvShape& shape, const T* dy, const T* w, T* dx);
template <class T>
RUNNEL_API void conv_backward_weights_plain(const ConvShape& shape, const T* x, const T* dy, T* dw);

}  // namespace runnel::cpu
