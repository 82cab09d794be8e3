#pragma once

// Normalisation per channel of row-major [rows, channels] memory (activations with everything but the
// channels taken together). For float and double. Rows are cut by shape alone and partial sums combined in
// order.

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// The mean and the (biased) variance of every channel. Accurate also where the mean is large beside the
// deviation.
template <class T>
void channel_moments(const T* x, int64_t rows, int64_t channels, T* mean, T* variance);

// y = (x - mean) * factor + offset
template <class T>
void normalize_channels(const T* x, int64_t rows, int64_t channels, const T* mean, const T* factor, const T* offset,
                        T* y);

// sum_dy = sum(dy), sum_dy_x = sum(dy * (x - mean)), per channel.
template <class T>
void channel_products(const T* dy, const T* x, int64_t rows, int64_t channels, const T* mean, T* sum_dy, T* sum_dy_x);

// dx = factor * (dy - shift - (x - mean) * slope)
template <class T>
void normalize_backward(const T* dy, const T* x, int64_t rows, int64_t channels, const T* mean, const T* factor,
                        const T* shift, const T* slope, T* dx);

}  // namespace runnel::cpu
