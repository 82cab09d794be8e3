#pragma once

#include <cstdint>

#include "runnel/base/export.h"
#include "runnel/base/philox.h"

namespace runnel::cpu {

// Each fills out[0, n) from `gen` with the numbers TensorFlow's CPU kernels draw from the same state; the values of
// an element depend on its position alone, so the work may be cut anywhere. T: Half, BFloat16, float, double.
template <class T>
RUNNEL_API void fill_uniform(Philox gen, T* out, int64_t n);
template <class T>
RUNNEL_API void fill_normal(Philox gen, T* out, int64_t n);
// Normals beyond two standard deviations are drawn again.
template <class T>
RUNNEL_API void fill_truncated_normal(Philox gen, T* out, int64_t n);
// In [lo, hi). T: int32_t, int64_t.
template <class T>
RUNNEL_API void fill_uniform_int(Philox gen, T lo, T hi, T* out, int64_t n);
// samples[i * num_alpha + j] is the i-th Gamma(alpha[j], 1).
template <class T>
RUNNEL_API void fill_gamma(Philox gen, const T* alpha, int64_t num_alpha, T* samples, int64_t num_samples);

// Draws that take an unknown number of words (rejection) have this many blocks of their own per output.
inline constexpr uint64_t kBlocksPerRejection = 64;
inline constexpr uint64_t kBlocksPerGamma = 256;

// Blocks that n outputs of `bytes` bytes need without rejection.
inline uint64_t plain_blocks(int64_t n, int bytes) {
  const int64_t per_block = bytes == 8 ? 2 : 4;
  return static_cast<uint64_t>((n + per_block - 1) / per_block);
}

}  // namespace runnel::cpu
