#include "runnel/kernels/cpu/gemv.h"

#include <immintrin.h>

#include <algorithm>

#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu {
namespace {

RUNNEL_AVX2 __m256i tail_mask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

RUNNEL_AVX2 float sum(__m256 x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

// y += x0 * b0 + x1 * b1 + x2 * b2 + x3 * b3 for the eight floats at j
RUNNEL_AVX2 __m256 four_rows(const __m256* x, const float* const* b, int64_t j, __m256 y) {
  const __m256 s =
      _mm256_fmadd_ps(x[1], _mm256_loadu_ps(b[1] + j), _mm256_fmadd_ps(x[0], _mm256_loadu_ps(b[0] + j), y));
  const __m256 t = _mm256_fmadd_ps(x[3], _mm256_loadu_ps(b[3] + j), _mm256_mul_ps(x[2], _mm256_loadu_ps(b[2] + j)));
  return _mm256_add_ps(s, t);
}

// Rows are streamed in order, four at a time, over a y that stays in the first-level cache. Whole vectors and the tail
// use the same operations, so a cut of the columns does not change a bit.
RUNNEL_AVX2 void rows_avx2(int64_t n, int64_t k, const float* x, int64_t incx, const float* b, int64_t ldb, float* y) {
  std::fill(y, y + n, 0.0f);
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    __m256 xs[4];
    const float* rows[4];
    for (int i = 0; i < 4; ++i) {
      xs[i] = _mm256_set1_ps(x[(p + i) * incx]);
      rows[i] = b + (p + i) * ldb;
    }
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) _mm256_storeu_ps(y + j, four_rows(xs, rows, j, _mm256_loadu_ps(y + j)));
    if (j < n) {
      const __m256i mask = tail_mask(n - j);
      alignas(32) float copy[4][8];
      const float* copies[4] = {copy[0], copy[1], copy[2], copy[3]};
      for (int i = 0; i < 4; ++i) _mm256_store_ps(copy[i], _mm256_maskload_ps(rows[i] + j, mask));
      _mm256_maskstore_ps(y + j, mask, four_rows(xs, copies, 0, _mm256_maskload_ps(y + j, mask)));
    }
  }
  for (; p < k; ++p) {
    const __m256 x0 = _mm256_set1_ps(x[p * incx]);
    for (int64_t j = 0; j < n; j += 8) {
      const __m256i mask = tail_mask(std::min<int64_t>(8, n - j));
      const __m256 row = _mm256_maskload_ps(b + p * ldb + j, mask);
      _mm256_maskstore_ps(y + j, mask, _mm256_fmadd_ps(x0, row, _mm256_maskload_ps(y + j, mask)));
    }
  }
}

// The same, bit for bit, with a short y in V vectors of registers.
template <int V>
RUNNEL_AVX2 void short_rows_avx2(int64_t n, int64_t k, const float* x, int64_t incx, const float* b, int64_t ldb,
                                 float* y) {
  const __m256i mask = tail_mask(n - 8 * (V - 1));
  __m256 sum[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) sum[v] = _mm256_setzero_ps();
  int64_t p = 0;
  for (; p + 4 <= k; p += 4, b += 4 * ldb) {
    const __m256 x0 = _mm256_set1_ps(x[p * incx]), x1 = _mm256_set1_ps(x[(p + 1) * incx]);
    const __m256 x2 = _mm256_set1_ps(x[(p + 2) * incx]), x3 = _mm256_set1_ps(x[(p + 3) * incx]);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const float* at = b + 8 * v;
      const bool last = v == V - 1;
      const __m256 b0 = last ? _mm256_maskload_ps(at, mask) : _mm256_loadu_ps(at);
      const __m256 b1 = last ? _mm256_maskload_ps(at + ldb, mask) : _mm256_loadu_ps(at + ldb);
      const __m256 b2 = last ? _mm256_maskload_ps(at + 2 * ldb, mask) : _mm256_loadu_ps(at + 2 * ldb);
      const __m256 b3 = last ? _mm256_maskload_ps(at + 3 * ldb, mask) : _mm256_loadu_ps(at + 3 * ldb);
      const __m256 s = _mm256_fmadd_ps(x1, b1, _mm256_fmadd_ps(x0, b0, sum[v]));
      sum[v] = _mm256_add_ps(s, _mm256_fmadd_ps(x3, b3, _mm256_mul_ps(x2, b2)));
    }
  }
  for (; p < k; ++p, b += ldb) {
    const __m256 x0 = _mm256_set1_ps(x[p * incx]);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const __m256 row = v == V - 1 ? _mm256_maskload_ps(b + 8 * v, mask) : _mm256_loadu_ps(b + 8 * v);
      sum[v] = _mm256_fmadd_ps(x0, row, sum[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < V - 1; ++v) _mm256_storeu_ps(y + 8 * v, sum[v]);
  _mm256_maskstore_ps(y + 8 * (V - 1), mask, sum[V - 1]);
}

// One chain per column, y in V vectors of registers throughout, for rows too short to stream well.
template <int V>
RUNNEL_AVX2 void held_rows_avx2(int64_t n, int64_t k, const float* x, int64_t incx, const float* b, int64_t ldb,
                                float* y) {
  const __m256i mask = tail_mask(n - 8 * (V - 1));
  __m256 sum[V];
#pragma GCC unroll 16
  for (int v = 0; v < V; ++v) sum[v] = _mm256_setzero_ps();
  for (int64_t p = 0; p < k; ++p, b += ldb) {
    const __m256 x0 = _mm256_set1_ps(x[p * incx]);
#pragma GCC unroll 16
    for (int v = 0; v < V - 1; ++v) sum[v] = _mm256_fmadd_ps(x0, _mm256_loadu_ps(b + 8 * v), sum[v]);
    sum[V - 1] = _mm256_fmadd_ps(x0, _mm256_maskload_ps(b + 8 * (V - 1), mask), sum[V - 1]);
  }
#pragma GCC unroll 16
  for (int v = 0; v < V - 1; ++v) _mm256_storeu_ps(y + 8 * v, sum[v]);
  _mm256_maskstore_ps(y + 8 * (V - 1), mask, sum[V - 1]);
}

// From 7 vectors on there are chains enough to hide the latency; 13 are all that fit.
constexpr int64_t kFewestHeld = 7, kMostHeld = 13;
using HeldRows = void (*)(int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*);
constexpr HeldRows kShortRows[] = {short_rows_avx2<1>, short_rows_avx2<2>, short_rows_avx2<3>,
                                   short_rows_avx2<4>, short_rows_avx2<5>, short_rows_avx2<6>};
constexpr HeldRows kHeldRows[] = {held_rows_avx2<7>,  held_rows_avx2<8>,  held_rows_avx2<9>, held_rows_avx2<10>,
                                  held_rows_avx2<11>, held_rows_avx2<12>, held_rows_avx2<13>};

// The same of a packed matrix (gemv.h), V whole vectors of 16 floats and a part of one to a row: loads of half as many
// registers, of which only the last crosses lines. The same chains of sums, so the same bits.
template <int V>
RUNNEL_AVX512 void packed_rows_avx512(int64_t n, int64_t k, const float* x, const float* b, float* y) {
  const int64_t tail = n - 16 * V;
  const auto mask = static_cast<__mmask16>((1u << tail) - 1);
  __m512 sum[V], last = _mm512_setzero_ps();
#pragma GCC unroll 16
  for (int v = 0; v < V; ++v) sum[v] = _mm512_setzero_ps();
  for (int64_t p = 0; p < k; p += kPackedGroup, b += kPackedGroup * n) {
    const float* whole = b;
    const float* part = b + kPackedGroup * 16 * V;
    const float* end = whole + std::min(kPackedGroup, k - p) * 16 * V;
    for (; whole < end; whole += 16 * V, part += tail, ++x) {
      const __m512 x0 = _mm512_set1_ps(*x);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[v] = _mm512_fmadd_ps(x0, _mm512_load_ps(whole + 16 * v), sum[v]);
      last = _mm512_fmadd_ps(x0, _mm512_maskz_loadu_ps(mask, part), last);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < V; ++v) _mm512_storeu_ps(y + 16 * v, sum[v]);
  _mm512_mask_storeu_ps(y + 16 * V, mask, last);
}

using PackedRows = void (*)(int64_t, int64_t, const float*, const float*, float*);
constexpr PackedRows kPackedRows[] = {packed_rows_avx512<3>, packed_rows_avx512<4>, packed_rows_avx512<5>,
                                      packed_rows_avx512<6>};

// Rows of whole vectors, one after the other, are packed as they are.
bool is_as_packed(int64_t n, const float* b, int64_t ldb) {
  return n % 16 == 0 && ldb == n && reinterpret_cast<uintptr_t>(b) % 64 == 0;
}

template <int R>
RUNNEL_AVX2 void dots_avx2(int64_t k, const float* x, const float* b, int64_t ldb, float* y) {
  __m256 acc[R], more[R];
  for (int i = 0; i < R; ++i) acc[i] = more[i] = _mm256_setzero_ps();
  int64_t p = 0;
  for (; p + 16 <= k; p += 16) {
    const __m256 x0 = _mm256_loadu_ps(x + p), x1 = _mm256_loadu_ps(x + p + 8);
    for (int i = 0; i < R; ++i) {
      acc[i] = _mm256_fmadd_ps(x0, _mm256_loadu_ps(b + i * ldb + p), acc[i]);
      more[i] = _mm256_fmadd_ps(x1, _mm256_loadu_ps(b + i * ldb + p + 8), more[i]);
    }
  }
  for (; p < k; p += 8) {
    const __m256i mask = tail_mask(std::min<int64_t>(8, k - p));
    const __m256 x0 = _mm256_maskload_ps(x + p, mask);
    for (int i = 0; i < R; ++i) acc[i] = _mm256_fmadd_ps(x0, _mm256_maskload_ps(b + i * ldb + p, mask), acc[i]);
  }
  for (int i = 0; i < R; ++i) y[i] = sum(_mm256_add_ps(acc[i], more[i]));
}

}  // namespace

bool gemv_packs(int64_t n) {
  return has_avx512() && n % 16 != 0 && (n + 7) / 8 >= kFewestHeld && (n + 7) / 8 <= kMostHeld;
}

void gemv_pack(int64_t n, int64_t k, const float* b, float* packed) {
  const int64_t whole = n / 16 * 16, tail = n - whole;
  for (int64_t p = 0; p < k; ++p, b += n) {
    float* group = packed + p / kPackedGroup * kPackedGroup * n;
    const int64_t row = p % kPackedGroup;
    std::copy(b, b + whole, group + row * whole);
    std::copy(b + whole, b + n, group + kPackedGroup * whole + row * tail);
  }
}

void gemv_packed(int64_t n, int64_t k, const float* x, const float* packed, float* y) {
  kPackedRows[n / 16 - 3](n, k, x, packed, y);
}

void gemv_rows(int64_t n, int64_t k, const float* x, int64_t incx, const float* b, int64_t ldb, float* y) {
  if (has_avx2()) {
    const int64_t vectors = (n + 7) / 8;
    if (vectors < kFewestHeld) return kShortRows[vectors - 1](n, k, x, incx, b, ldb, y);
    if (vectors > kMostHeld) return rows_avx2(n, k, x, incx, b, ldb, y);
    if (has_avx512() && incx == 1 && is_as_packed(n, b, ldb)) return gemv_packed(n, k, x, b, y);
    return kHeldRows[vectors - kFewestHeld](n, k, x, incx, b, ldb, y);
  }
  std::fill(y, y + n, 0.0f);
  for (int64_t p = 0; p < k; ++p) {
    const float x0 = x[p * incx];
    for (int64_t j = 0; j < n; ++j) y[j] += x0 * b[p * ldb + j];
  }
}

void gemv_dots(int64_t n, int64_t k, const float* x, const float* b, int64_t ldb, float* y) {
  if (has_avx2()) {
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) dots_avx2<4>(k, x, b + j * ldb, ldb, y + j);
    for (; j < n; ++j) dots_avx2<1>(k, x, b + j * ldb, ldb, y + j);
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    float lanes[8] = {};  // as the vectors do: shorter sums lose fewer bits
    int64_t p = 0;
    for (; p + 8 <= k; p += 8) {
      for (int i = 0; i < 8; ++i) lanes[i] += x[p + i] * b[j * ldb + p + i];
    }
    for (; p < k; ++p) lanes[p % 8] += x[p] * b[j * ldb + p];
    y[j] = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }
}

}  // namespace runnel::cpu
