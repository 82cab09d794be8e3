#include "runnel/kernels/cpu/resample.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/scratch.h"
#include "runnel/tensor/half.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kTask = 131072;  // multiplications worth a task of their own
constexpr int64_t kPad = 16;       // floats behind a row that vectors may touch

typedef float F4 __attribute__((vector_size(16)));
RUNNEL_INLINE F4 load4(const float* p) {
  F4 v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
RUNNEL_INLINE void store4(float* p, F4 v) { std::memcpy(p, &v, sizeof(v)); }

// t[j] = sum of w[k] * x[k * stride + j].
template <class T>
RUNNEL_INLINE void blend_rows_body(const T* x, int64_t stride, const float* w, int64_t taps, float* __restrict t,
                                   int64_t n) {
  if (taps == 1) {
    const float a = w[0];
    for (int64_t j = 0; j < n; ++j) t[j] = static_cast<float>(x[j]) * a;
    return;
  }
  if (taps == 2) {
    const T* __restrict p = x;
    const T* __restrict q = x + stride;
    const float a = w[0], b = w[1];
    for (int64_t j = 0; j < n; ++j) t[j] = static_cast<float>(p[j]) * a + static_cast<float>(q[j]) * b;
    return;
  }
  constexpr int64_t kBlock = 64;  // sums stay in registers over all taps
  int64_t j = 0;
  for (; j + kBlock <= n; j += kBlock) {
    float sum[kBlock];
    for (int64_t i = 0; i < kBlock; ++i) sum[i] = static_cast<float>(x[j + i]) * w[0];
    for (int64_t k = 1; k < taps; ++k) {
      const T* __restrict row = x + k * stride + j;
      const float a = w[k];
      for (int64_t i = 0; i < kBlock; ++i) sum[i] += static_cast<float>(row[i]) * a;
    }
    std::memcpy(t + j, sum, sizeof(sum));
  }
  for (; j < n; ++j) {
    float sum = static_cast<float>(x[j]) * w[0];
    for (int64_t k = 1; k < taps; ++k) sum += static_cast<float>(x[k * stride + j]) * w[k];
    t[j] = sum;
  }
}

template <class T>
void blend_rows_base(const T* x, int64_t stride, const float* w, int64_t taps, float* t, int64_t n) {
  blend_rows_body(x, stride, w, taps, t, n);
}
template <class T>
RUNNEL_AVX2 void blend_rows_avx2(const T* x, int64_t stride, const float* w, int64_t taps, float* t, int64_t n) {
  blend_rows_body(x, stride, w, taps, t, n);
}
template <class T>
void blend_rows(const T* x, int64_t stride, const float* w, int64_t taps, float* t, int64_t n) {
  return has_avx2() ? blend_rows_avx2(x, stride, w, taps, t, n) : blend_rows_base(x, stride, w, taps, t, n);
}

// One output row of pixels of C channels, three or four, each as one vector of four; the vector of three writes one
// float of the next pixel, which is written after it, and reads one more than the row has.
template <int C>
RUNNEL_INLINE void blend_pixels_body(const float* t, const AxisWeights& cols, float* y) {
  const int64_t taps = cols.taps, n = cols.out;
  const int32_t* start = cols.start.data();
  const float* w = cols.weights.data();
  const auto pixel = [&](int64_t i) {
    const float* p = t + int64_t{start[i]} * C;
    const float* v = w + i * taps;
    if (taps == 2) return load4(p) * v[0] + load4(p + C) * v[1];
    F4 sum = load4(p) * v[0];
    for (int64_t k = 1; k < taps; ++k) sum += load4(p + k * C) * v[k];
    return sum;
  };
  const int64_t whole = C == 4 ? n : n - 1;
  for (int64_t i = 0; i < whole; ++i) store4(y + i * C, pixel(i));
  if (whole < n) {
    const F4 last = pixel(n - 1);
    std::memcpy(y + (n - 1) * C, &last, sizeof(float) * C);
  }
}

RUNNEL_INLINE void blend_any_body(const float* t, const AxisWeights& cols, int64_t channels, float* y) {
  const int64_t taps = cols.taps;
  const float* w = cols.weights.data();
  for (int64_t i = 0; i < cols.out; ++i, w += taps, y += channels) {
    const float* p = t + cols.start[static_cast<size_t>(i)] * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float sum = p[c] * w[0];
      for (int64_t k = 1; k < taps; ++k) sum += p[k * channels + c] * w[k];
      y[c] = sum;
    }
  }
}

RUNNEL_INLINE void blend_columns_body(const float* t, const AxisWeights& cols, int64_t channels, float* y) {
  if (channels == 3) {
    blend_pixels_body<3>(t, cols, y);
  } else if (channels == 4) {
    blend_pixels_body<4>(t, cols, y);
  } else {
    blend_any_body(t, cols, channels, y);
  }
}
void blend_columns_base(const float* t, const AxisWeights& cols, int64_t channels, const float*, float* y) {
  blend_columns_body(t, cols, channels, y);
}

// Two pixels of three channels at a time, u + (v - u) * share, for two weights that sum to one. `shares` has that of
// every pixel four times.
RUNNEL_AVX2 void lerp_pixels_avx2(const float* t, const AxisWeights& cols, const float* shares, float* y) {
  const int32_t* start = cols.start.data();
  const int64_t n = cols.out;
  const auto pair = [](const float* a, const float* b) RUNNEL_AVX2 {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1);
  };
  int64_t i = 0;
  for (; i + 2 < n; i += 2) {
    const float* a = t + int64_t{start[i]} * 3;
    const float* b = t + int64_t{start[i + 1]} * 3;
    const __m256 u = pair(a, b), v = pair(a + 3, b + 3);
    const __m256 r = _mm256_fmadd_ps(_mm256_sub_ps(v, u), _mm256_loadu_ps(shares + 4 * i), u);
    _mm_storeu_ps(y + 3 * i, _mm256_castps256_ps128(r));
    _mm_storeu_ps(y + 3 * i + 3, _mm256_extractf128_ps(r, 1));
  }
  for (; i < n; ++i) {
    const float* a = t + int64_t{start[i]} * 3;
    for (int k = 0; k < 3; ++k) y[3 * i + k] = std::fma(a[3 + k] - a[k], shares[4 * i], a[k]);
  }
}

RUNNEL_AVX2 void blend_columns_avx2(const float* t, const AxisWeights& cols, int64_t channels, const float* shares,
                                    float* y) {
  if (shares) return lerp_pixels_avx2(t, cols, shares, y);
  blend_columns_body(t, cols, channels, y);
}

// What lerp_pixels_avx2 wants, where it can be used.
std::vector<float> lerp_shares(const AxisWeights& cols, int64_t channels) {
  std::vector<float> shares;
  if (!has_avx2() || channels != 3 || cols.taps != 2 || !cols.sums_to_one) return shares;
  shares.reserve(static_cast<size_t>(cols.out) * 4);
  for (int64_t i = 0; i < cols.out; ++i) shares.insert(shares.end(), 4, cols.weights[static_cast<size_t>(2 * i + 1)]);
  return shares;
}

}  // namespace

template <class T>
void resample(const T* x, int64_t batch, int64_t channels, const AxisWeights& rows, const AxisWeights& cols, float* y) {
  const int64_t in_row = cols.in * channels, out_row = cols.out * channels;
  const int64_t cost = std::max<int64_t>(1, in_row * rows.taps + out_row * cols.taps);
  const auto columns = has_avx2() ? blend_columns_avx2 : blend_columns_base;
  const std::vector<float> shares = lerp_shares(cols, channels);
  parallel_for(batch * rows.out, std::max<int64_t>(1, kTask / cost), [&](int64_t begin, int64_t end) {
    ScratchFrame scratch;
    auto* t = scratch.get<float>(in_row + kPad);
    std::fill(t + in_row, t + in_row + kPad, 0.0f);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t image = r / rows.out, i = r % rows.out;
      const T* from = x + (image * rows.in + rows.start[static_cast<size_t>(i)]) * in_row;
      blend_rows(from, in_row, rows.weights.data() + i * rows.taps, rows.taps, t, in_row);
      columns(t, cols, channels, shares.empty() ? nullptr : shares.data(), y + r * out_row);
    }
  });
}

#define RUNNEL_RESAMPLE(T) \
  template RUNNEL_API void resample<T>(const T*, int64_t, int64_t, const AxisWeights&, const AxisWeights&, float*);
RUNNEL_RESAMPLE(int8_t)
RUNNEL_RESAMPLE(uint8_t)
RUNNEL_RESAMPLE(int16_t)
RUNNEL_RESAMPLE(uint16_t)
RUNNEL_RESAMPLE(int32_t)
RUNNEL_RESAMPLE(int64_t)
RUNNEL_RESAMPLE(Half)
RUNNEL_RESAMPLE(BFloat16)
RUNNEL_RESAMPLE(float)
RUNNEL_RESAMPLE(double)
#undef RUNNEL_RESAMPLE

void resample_transposed(const float* dy, int64_t batch, int64_t channels, const AxisWeights& rows,
                         const AxisWeights& cols, float* dx) {
  const int64_t in_row = cols.in * channels, out_row = cols.out * channels;
  // Columns first, every output row by itself; then each input row gathers the rows that it had a part in.
  std::vector<float> narrow(static_cast<size_t>(batch * rows.out * in_row));
  const int64_t column_cost = std::max<int64_t>(1, out_row * cols.taps + in_row);
  parallel_for(batch * rows.out, std::max<int64_t>(1, kTask / column_cost), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* g = dy + r * out_row;
      float* t = narrow.data() + r * in_row;
      const float* w = cols.weights.data();
      for (int64_t i = 0; i < cols.out; ++i, g += channels) {
        float* p = t + cols.start[static_cast<size_t>(i)] * channels;
        for (int64_t k = 0; k < cols.taps; ++k, ++w) {
          for (int64_t c = 0; c < channels; ++c) p[k * channels + c] += *w * g[c];
        }
      }
    }
  });
  struct Part {
    int64_t row;
    float weight;
  };
  std::vector<std::vector<Part>> parts(static_cast<size_t>(rows.in));
  for (int64_t i = 0; i < rows.out; ++i) {
    for (int64_t k = 0; k < rows.taps; ++k) {
      const float w = rows.weights[static_cast<size_t>(i * rows.taps + k)];
      if (w != 0) parts[static_cast<size_t>(rows.start[static_cast<size_t>(i)] + k)].push_back({i, w});
    }
  }
  const int64_t row_cost = std::max<int64_t>(1, in_row * (1 + rows.out * rows.taps / std::max<int64_t>(1, rows.in)));
  parallel_for(batch * rows.in, std::max<int64_t>(1, kTask / row_cost), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* out = dx + r * in_row;
      std::fill(out, out + in_row, 0.0f);
      const float* image = narrow.data() + r / rows.in * rows.out * in_row;
      for (const Part& part : parts[static_cast<size_t>(r % rows.in)]) {
        const float* from = image + part.row * in_row;
        for (int64_t j = 0; j < in_row; ++j) out[j] += part.weight * from[j];
      }
    }
  });
}

}  // namespace runnel::cpu
