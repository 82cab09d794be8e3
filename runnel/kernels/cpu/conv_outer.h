#pragma once

// Internal to conv.cpp: the gradient of the weights of a convolution with few input channels, as sums of outer
// products of the input under the kernel and the channels of dy. AVX-512 only.
#include "runnel/kernels/cpu/conv.h"

namespace runnel::cpu {

bool conv_outer_runs(const ConvShape& shape);

// dw[kernel..., in, out] of all of x and dy, on the calling thread.
void conv_outer_weights(const ConvShape& shape, const float* x, const float* dy, float* dw);

}  // namespace runnel::cpu
