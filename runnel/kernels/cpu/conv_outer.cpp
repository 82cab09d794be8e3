#include "runnel/kernels/cpu/conv_outer.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/scratch.h"

// The taps of one row of the kernel, with their channels, lie one after the other both in x and in dw: a column of the
// output contributes the product of such a run of x (rows of a tile) with 32 channels of dy (its columns). Lanes are
// output channels, so none are spent on input channels that are not there.

namespace runnel::cpu {
namespace {

constexpr int64_t kOuterLanes = 32;       // two vectors
constexpr int64_t kOuterRows = 14;        // times two vectors: 28 of 32 registers
constexpr int64_t kOuterPositions = 256;  // of dy at a time: 32 KB stay in the first-level cache

// c[i * ldc + j] += sum over r < rows, q < columns of x[r * x_row + q * x_step + i] * dy[r * dy_row + q * 32 + j] for
// i < R, j < 32. `GCC unroll`: unrolled any later, GCC keeps the tile in memory.
template <int R>
RUNNEL_AVX512 void outer_tile(int64_t rows, int64_t columns, const float* x, int64_t x_row, int64_t x_step,
                              const float* dy, int64_t dy_row, float* c, int64_t ldc) {
  __m512 sum[R][2];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  for (int64_t r = 0; r < rows; ++r) {
    const float *px = x + r * x_row, *py = dy + r * dy_row;
    for (int64_t q = 0; q < columns; ++q, px += x_step, py += kOuterLanes) {
      const __m512 y0 = _mm512_loadu_ps(py), y1 = _mm512_loadu_ps(py + 16);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const __m512 v = _mm512_set1_ps(px[i]);
        sum[i][0] = _mm512_fmadd_ps(v, y0, sum[i][0]);
        sum[i][1] = _mm512_fmadd_ps(v, y1, sum[i][1]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    float* to = c + i * ldc;
    _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sum[i][0]));
    _mm512_storeu_ps(to + 16, _mm512_add_ps(_mm512_loadu_ps(to + 16), sum[i][1]));
  }
}

using OuterTile = void (*)(int64_t, int64_t, const float*, int64_t, int64_t, const float*, int64_t, float*, int64_t);
constexpr OuterTile kOuterTiles[kOuterRows] = {
    outer_tile<1>, outer_tile<2>, outer_tile<3>,  outer_tile<4>,  outer_tile<5>,  outer_tile<6>,  outer_tile<7>,
    outer_tile<8>, outer_tile<9>, outer_tile<10>, outer_tile<11>, outer_tile<12>, outer_tile<13>, outer_tile<14>};

// Input that a block of rows of the output reads: rows `stride` floats apart. Padding is written out as zeros.
struct Window {
  const float* data;
  int64_t stride;
};

Window window_of(const ConvShape& s, const float* image, int64_t begin, int64_t end, float* buffer) {
  const int64_t in = s.in_channels, row = s.in[1] * in, top = begin * s.stride[0] - s.pad_before[0];
  const int64_t rows = (end - begin - 1) * s.stride[0] + s.extent(0);
  const int64_t reach = (s.out(1) - 1) * s.stride[1] + s.kernel[1];
  if (top >= 0 && top + rows <= s.in[0] && s.pad_before[1] == 0 && reach <= s.in[1]) return {image + top * row, row};
  const int64_t stride = reach * in, left = std::min(s.pad_before[1], reach);
  const int64_t columns = std::max<int64_t>(0, std::min(s.in[1], reach - left));
  for (int64_t i = 0; i < rows; ++i) {
    float* to = buffer + i * stride;
    const bool outside = top + i < 0 || top + i >= s.in[0];
    const int64_t from = outside ? stride : left * in, until = outside ? stride : (left + columns) * in;
    std::fill(to, to + from, 0.0f);
    if (!outside) std::copy_n(image + (top + i) * row, columns * in, to + from);
    std::fill(to + until, to + stride, 0.0f);
  }
  return {buffer, stride};
}

// 32 channels of dy of `positions` places, one after the other.
const float* pack_channels(const float* dy, int64_t positions, int64_t channels, float* packed) {
  if (channels == kOuterLanes) return dy;
  for (int64_t i = 0; i < positions; ++i) {
    std::memcpy(packed + i * kOuterLanes, dy + i * channels, kOuterLanes * sizeof(float));
  }
  return packed;
}

}  // namespace

bool conv_outer_runs(const ConvShape& s) {
  return has_avx512() && s.dims == 2 && s.groups == 1 && s.in_channels <= 4 && s.out_channels % kOuterLanes == 0 &&
         s.dilation[1] == 1;
}

void conv_outer_weights(const ConvShape& s, const float* x, const float* dy, float* dw) {
  std::fill(dw, dw + s.weight_size(), 0.0f);
  const int64_t in = s.in_channels, out = s.out_channels, height = s.out(0), width = s.out(1);
  const int64_t x_image = s.in[0] * s.in[1] * in, run = s.kernel[1] * in, tiles = (run + kOuterRows - 1) / kOuterRows;
  const int64_t blocks = std::clamp<int64_t>(height * width / kOuterPositions, 1, height);
  const int64_t most = (height + blocks - 1) / blocks;
  ScratchFrame frame;
  float* packed = frame.get<float>(most * width * kOuterLanes);
  float* buffer =
      frame.get<float>(((most - 1) * s.stride[0] + s.extent(0)) * ((width - 1) * s.stride[1] + s.kernel[1]) * in);
  for (int64_t i = 0; i < s.batch * blocks; ++i) {
    const int64_t n = i / blocks, begin = height * (i % blocks) / blocks, end = height * (i % blocks + 1) / blocks;
    const Window window = window_of(s, x + n * x_image, begin, end, buffer);
    for (int64_t channel = 0; channel < out; channel += kOuterLanes) {
      const float* lanes = dy + (n * height + begin) * width * out + channel;
      lanes = pack_channels(lanes, (end - begin) * width, out, packed);
      for (int64_t k = 0; k < s.kernel[0]; ++k) {
        const float* rows = window.data + k * s.dilation[0] * window.stride;
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t first = run * t / tiles, count = run * (t + 1) / tiles - first;
          kOuterTiles[count - 1](end - begin, width, rows + first, s.stride[0] * window.stride, in * s.stride[1], lanes,
                                 width * kOuterLanes, dw + (k * run + first) * out + channel, out);
        }
      }
    }
  }
}

}  // namespace runnel::cpu
