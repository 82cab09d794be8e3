#include "runnel/kernels/cpu/gemm_narrow.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "runnel/kernels/cpu/copy.h"
#include "runnel/kernels/cpu/isa.h"

// Every element is one chain of fused multiply-adds over p in order, whatever tile computes it, so a cut of rows or
// columns does not change a bit. Loops over the registers of a tile carry `GCC unroll`: unrolled any later, GCC keeps
// the tile in memory.

namespace runnel::cpu {
namespace {

RUNNEL_AVX2 __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// R rows of A, contiguous in p, by V vectors of columns, the last of them under `mask`. With `more` the sums go on from
// what c holds.
template <int R, int V>
RUNNEL_AVX2 void row_tile(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
                          __m256i mask, bool more) {
  __m256 sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    if constexpr (V == 2) sum[i][0] = more ? _mm256_loadu_ps(c + i * ldc) : _mm256_setzero_ps();
    sum[i][V - 1] = more ? _mm256_maskload_ps(c + i * ldc + 8 * (V - 1), mask) : _mm256_setzero_ps();
  }
  for (int64_t p = 0; p < k; ++p) {
    __m256 row[V];
    if constexpr (V == 2) row[0] = _mm256_loadu_ps(b + p * ldb);
    row[V - 1] = _mm256_maskload_ps(b + p * ldb + 8 * (V - 1), mask);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const __m256 x = _mm256_broadcast_ss(a + i * lda + p);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] = _mm256_fmadd_ps(x, row[v], sum[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    if constexpr (V == 2) _mm256_storeu_ps(c + i * ldc, sum[i][0]);
    _mm256_maskstore_ps(c + i * ldc + 8 * (V - 1), mask, sum[i][V - 1]);
  }
}

constexpr int64_t kTileRows = 6;  // times two vectors: 12 of 16 registers

using RowTile = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t, __m256i, bool);
template <int V>
constexpr RowTile kRowTiles[kTileRows] = {row_tile<1, V>, row_tile<2, V>, row_tile<3, V>,
                                          row_tile<4, V>, row_tile<5, V>, row_tile<6, V>};

RUNNEL_AVX2 void rows_by_columns(int64_t rows, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                                 int64_t ldb, float* c, int64_t ldc, bool more) {
  if (n > 8) return kRowTiles<2>[rows - 1](k, a, lda, b, ldb, c, ldc, first_lanes(n - 8), more);
  kRowTiles<1>[rows - 1](k, a, lda, b, ldb, c, ldc, first_lanes(n), more);
}

// sum[i] += the terms [p, p + P) of R rows of A times the columns of B that `mask` selects. Row after row, so that a
// line of A is used up before others of its set of the cache come: rows often lie a multiple of 4 KB apart.
template <int R, int P>
RUNNEL_AVX512 RUNNEL_INLINE void add_terms(int64_t p, const float* a, int64_t lda, const float* b, int64_t ldb,
                                           __mmask16 mask, __m512 (&sum)[R]) {
  __m512 row[P];
#pragma GCC unroll 16
  for (int t = 0; t < P; ++t) row[t] = _mm512_maskz_loadu_ps(mask, b + (p + t) * ldb);
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int t = 0; t < P; ++t) sum[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * lda + p + t]), row[t], sum[i]);
  }
}

// R rows of A by the columns that `mask` selects, at most 16: one vector.
template <int R>
RUNNEL_AVX512 void narrow_tile(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                               int64_t ldc, __mmask16 mask) {
  __m512 sum[R];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) sum[i] = _mm512_setzero_ps();
  int64_t p = 0;
  for (; p + 8 <= k; p += 8) add_terms<R, 8>(p, a, lda, b, ldb, mask, sum);
  for (; p < k; ++p) add_terms<R, 1>(p, a, lda, b, ldb, mask, sum);
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) _mm512_mask_storeu_ps(c + i * ldc, mask, sum[i]);
}

constexpr int64_t kNarrowRows = 9;  // and 8 rows of B: 17 of 32 registers

using NarrowTile = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t, __mmask16);
constexpr NarrowTile kNarrowTiles[kNarrowRows] = {narrow_tile<1>, narrow_tile<2>, narrow_tile<3>,
                                                  narrow_tile<4>, narrow_tile<5>, narrow_tile<6>,
                                                  narrow_tile<7>, narrow_tile<8>, narrow_tile<9>};

// R rows by 32 columns, of which `low` and `high` select those that exist, of a packed B. Meanwhile fetches memory that
// is needed soon: one line for each other p, at ahead + p * step.
struct WideTile {
  int64_t k;
  const float* a;
  int64_t lda;
  float* packed;  // [k, 32]
  float* c;
  int64_t ldc;
  __mmask16 low, high;
  bool more;
  const float* ahead;
  int64_t step;
};

constexpr int64_t kFetchRows = 8;  // how far ahead the first-level cache is filled

// With `Packs` B is read from where it lies, at b + p * ldb, and packed for the tiles below: the copy costs next to
// nothing between the sums.
template <int R, bool Packs>
RUNNEL_AVX512 void wide_tile(const WideTile& t, const float* b, int64_t ldb) {
  __m512 sum[R][2];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    sum[i][0] = t.more ? _mm512_maskz_loadu_ps(t.low, t.c + i * t.ldc) : _mm512_setzero_ps();
    sum[i][1] = t.more ? _mm512_maskz_loadu_ps(t.high, t.c + i * t.ldc + 16) : _mm512_setzero_ps();
  }
  const float* a = t.a;
  const int64_t lda = t.lda;
  float* packed = t.packed;
  for (int64_t p = 0; p < t.k; ++p, packed += 32) {
    if (p % 2 == 0) _mm_prefetch(t.ahead + p * t.step, _MM_HINT_T1);
    __m512 row0, row1;
    if constexpr (Packs) {
      _mm_prefetch(b + kFetchRows * ldb, _MM_HINT_T0);
      _mm_prefetch(b + kFetchRows * ldb + 16, _MM_HINT_T0);
      row0 = _mm512_maskz_loadu_ps(t.low, b);
      row1 = _mm512_maskz_loadu_ps(t.high, b + 16);
      _mm512_storeu_ps(packed, row0);
      _mm512_storeu_ps(packed + 16, row1);
      b += ldb;
    } else {
      row0 = _mm512_loadu_ps(packed);
      row1 = _mm512_loadu_ps(packed + 16);
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const __m512 x = _mm512_set1_ps(a[i * lda + p]);
      sum[i][0] = _mm512_fmadd_ps(x, row0, sum[i][0]);
      sum[i][1] = _mm512_fmadd_ps(x, row1, sum[i][1]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    _mm512_mask_storeu_ps(t.c + i * t.ldc, t.low, sum[i][0]);
    _mm512_mask_storeu_ps(t.c + i * t.ldc + 16, t.high, sum[i][1]);
  }
}

constexpr int64_t kWideRows = 10;  // times two vectors: 20 of 32 registers

using WideTileFn = void (*)(const WideTile&, const float*, int64_t);
template <bool Packs>
constexpr WideTileFn kWideTiles[kWideRows] = {
    wide_tile<1, Packs>, wide_tile<2, Packs>, wide_tile<3, Packs>, wide_tile<4, Packs>, wide_tile<5, Packs>,
    wide_tile<6, Packs>, wide_tile<7, Packs>, wide_tile<8, Packs>, wide_tile<9, Packs>, wide_tile<10, Packs>};

// R rows by 64 packed columns, of which the first `columns` exist, for sums so short that storing the tile takes
// longest: longer runs in fewer rows of C (4.1 us against 4.8 of ten rows by 32 columns at m = 50, n = 512, k = 10).
template <int R>
RUNNEL_AVX512 void flat_tile(int64_t k, const float* a, int64_t lda, const float* b, float* c, int64_t ldc,
                             int64_t columns) {
  __m512 sum[R][4];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < k; ++p) {
    __m512 row[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) row[v] = _mm512_loadu_ps(b + p * 64 + 16 * v);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const __m512 x = _mm512_set1_ps(a[i * lda + p]);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) sum[i][v] = _mm512_fmadd_ps(x, row[v], sum[i][v]);
    }
  }
  const uint64_t mask = columns < 64 ? (uint64_t{1} << columns) - 1 : ~uint64_t{0};
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      _mm512_mask_storeu_ps(c + i * ldc + 16 * v, static_cast<__mmask16>(mask >> (16 * v)), sum[i][v]);
    }
  }
}

constexpr int64_t kFlatRows = 5;  // times four vectors: 20 of 32 registers
constexpr int64_t kFlatWidth = 64;

using FlatTile = void (*)(int64_t, const float*, int64_t, const float*, float*, int64_t, int64_t);
constexpr FlatTile kFlatTiles[kFlatRows] = {flat_tile<1>, flat_tile<2>, flat_tile<3>, flat_tile<4>, flat_tile<5>};

// Calls body(begin, rows) for groups of at most `most` rows of nearly equal size: a last group of one row would run
// at the speed of its two chains.
template <class Body>
void for_row_groups(int64_t m, int64_t most, Body body) {
  const int64_t groups = (m + most - 1) / most;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = m * g / groups, end = m * (g + 1) / groups;
    body(begin, end - begin);
  }
}

// 16 rows of C (columns of a stored A, contiguous) by J columns: lanes are rows, so none are spent on missing columns.
template <int J>
RUNNEL_AVX2 void column_tile(int64_t rows, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                             float* c, int64_t ldc) {
  const __m256i low = first_lanes(rows), high = first_lanes(rows - 8);
  __m256 sum[J][2];
#pragma GCC unroll 16
  for (int j = 0; j < J; ++j) sum[j][0] = sum[j][1] = _mm256_setzero_ps();
  for (int64_t p = 0; p < k; ++p) {
    const __m256 x0 = _mm256_maskload_ps(a + p * lda, low), x1 = _mm256_maskload_ps(a + p * lda + 8, high);
#pragma GCC unroll 16
    for (int j = 0; j < J; ++j) {
      const __m256 y = _mm256_broadcast_ss(b + p * ldb + j);
      sum[j][0] = _mm256_fmadd_ps(x0, y, sum[j][0]);
      sum[j][1] = _mm256_fmadd_ps(x1, y, sum[j][1]);
    }
  }
  alignas(32) float columns[J][16];
#pragma GCC unroll 16
  for (int j = 0; j < J; ++j) {
    _mm256_store_ps(columns[j], sum[j][0]);
    _mm256_store_ps(columns[j] + 8, sum[j][1]);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int j = 0; j < J; ++j) c[i * ldc + j] = columns[j][i];
  }
}

constexpr int64_t kTileColumns = 6;

using ColumnTile = void (*)(int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t);
constexpr ColumnTile kColumnTiles[kTileColumns] = {column_tile<1>, column_tile<2>, column_tile<3>,
                                                   column_tile<4>, column_tile<5>, column_tile<6>};

// Rows of B packed at a time: what a block of columns needs stays in the first-level cache.
constexpr int64_t kPackedRows = 128;

// Blocks of packed columns start this many floats apart. Not a multiple of 4 KB: their first lines would share one set
// of the cache.
int64_t block_stride(int64_t depth, int64_t width) { return depth * width + 32; }

// B[depth, n] as blocks of `width` columns, each [depth, width].
RUNNEL_AVX2 void pack(int64_t n, int64_t depth, int64_t width, const float* b, int64_t ldb, float* packed) {
  for (int64_t p = 0; p < depth; ++p) {
    int64_t j = 0;
    for (; j + kNarrow <= n; j += kNarrow) {  // of constant size: a call of memcpy costs as much as the copy
      float* block = packed + j / width * block_stride(depth, width) + j % width;
      std::memcpy(block + p * width, b + p * ldb + j, kNarrow * sizeof(float));
    }
    float* block = packed + j / width * block_stride(depth, width) + j % width;
    for (; j < n; ++j) block++ [p * width] = b[p * ldb + j];
  }
}

// The same from B stored as [n, depth].
void pack_transposed(int64_t n, int64_t depth, int64_t width, const float* b, int64_t ldb, float* packed) {
  for (int64_t j = 0; j < n; j += width) {
    float* block = packed + j / width * block_stride(depth, width);
    transpose_tile(b + j * ldb, ldb, block, width, depth, std::min(width, n - j));
  }
}

}  // namespace

void gemm_narrow(bool ta, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                 float* c, int64_t ldc) {
  if (!ta && has_avx512()) {
    static_assert(kNarrow == 16);
    const auto mask = static_cast<__mmask16>((1 << n) - 1);
    for_row_groups(m, kNarrowRows, [&](int64_t begin, int64_t rows) {
      kNarrowTiles[rows - 1](k, a + begin * lda, lda, b, ldb, c + begin * ldc, ldc, mask);
    });
    return;
  }
  if (!ta) {
    for_row_groups(m, kTileRows, [&](int64_t begin, int64_t rows) {
      rows_by_columns(rows, n, k, a + begin * lda, lda, b, ldb, c + begin * ldc, ldc, false);
    });
    return;
  }
  const int64_t groups = (n + kTileColumns - 1) / kTileColumns;
  for (int64_t i = 0; i < m; i += 16) {
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t begin = n * g / groups, columns = n * (g + 1) / groups - begin;
      kColumnTiles[columns - 1](std::min<int64_t>(16, m - i), k, a + i, lda, b + begin, ldb, c + i * ldc + begin, ldc);
    }
  }
}

int64_t skinny_scratch(int64_t n, int64_t k) { return (std::min(k, kPackedRows) + 2) * (n + kFlatWidth); }

void gemm_skinny(bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                 float* c, int64_t ldc, float* packed) {
  const bool wide = has_avx512(), flat = wide && k <= kShortSum && n >= kFlatWidth;
  const int64_t width = flat ? kFlatWidth : wide ? 2 * kNarrow : kNarrow;
  for (int64_t p = 0; p < k; p += kPackedRows) {
    const int64_t depth = std::min(kPackedRows, k - p);
    const bool packs = wide && !flat && !tb;  // the tiles of the first rows do
    if (tb) {
      pack_transposed(n, depth, width, b + p, ldb, packed);
    } else if (!packs) {
      pack(n, depth, width, b + p * ldb, ldb, packed);
    }
    const bool whole_next = !tb && p + kPackedRows + depth < k;
    int64_t tiles = 0;
    auto tile = [&](int64_t i, int64_t begin, int64_t rows) {
      float* block = packed + i * block_stride(depth, width);
      const int64_t j = i * width, columns = std::min(width, n - j);
      const float* x = a + begin * lda + p;
      float* y = c + begin * ldc + j;
      if (flat) return kFlatTiles[rows - 1](depth, x, lda, block, y, ldc, columns);
      if (!wide) return rows_by_columns(rows, columns, depth, x, lda, block, width, y, ldc, p > 0);
      // Tile by tile, every other line of a column of lines of the rows of B that are packed next.
      const int64_t line = tiles / 2 * kNarrow, parity = tiles % 2;
      ++tiles;
      const bool fetch = whole_next && line < n;
      const float* ahead = fetch ? b + (p + kPackedRows + parity) * ldb + line : x;
      const uint64_t mask = (uint64_t{1} << columns) - 1;
      const auto* run = packs && begin == 0 ? kWideTiles<true> : kWideTiles<false>;
      run[rows - 1]({depth, x, lda, block, y, ldc, static_cast<__mmask16>(mask), static_cast<__mmask16>(mask >> 16),
                     p > 0, ahead, fetch ? ldb : 0},
                    b + p * ldb + j, ldb);
    };
    const int64_t most = flat ? kFlatRows : wide ? kWideRows : kTileRows, blocks = (n + width - 1) / width;
    if (k <= kShortSum) {  // all of B is in the first-level cache: along the rows of C, which are written once
      for_row_groups(m, most, [&](int64_t begin, int64_t rows) {
        for (int64_t i = 0; i < blocks; ++i) tile(i, begin, rows);
      });
    } else {
      for (int64_t i = 0; i < blocks; ++i) {
        for_row_groups(m, most, [&](int64_t begin, int64_t rows) { tile(i, begin, rows); });
      }
    }
  }
}

}  // namespace runnel::cpu
