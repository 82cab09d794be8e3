#include "runnel/kernels/cpu/gemm_narrow.h"

#include <immintrin.h>

#include <algorithm>

#include "runnel/kernels/cpu/isa.h"

// Every element is one chain of fused multiply-adds over p in order, whatever tile computes it, so a cut of rows or
// columns does not change a bit. Loops over the registers of a tile carry `GCC unroll`: unrolled any later, GCC keeps
// the tile in memory.

namespace runnel::cpu {
namespace {

RUNNEL_AVX2 __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// R rows of A, contiguous in p, by V vectors of columns, the last of them under `mask`.
template <int R, int V>
RUNNEL_AVX2 void row_tile(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
                          __m256i mask) {
  __m256 sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = _mm256_setzero_ps();
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

using RowTile = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t, __m256i);
template <int V>
constexpr RowTile kRowTiles[kTileRows] = {row_tile<1, V>, row_tile<2, V>, row_tile<3, V>,
                                          row_tile<4, V>, row_tile<5, V>, row_tile<6, V>};

RUNNEL_AVX2 void rows_by_columns(int64_t rows, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                                 int64_t ldb, float* c, int64_t ldc) {
  if (n > 8) return kRowTiles<2>[rows - 1](k, a, lda, b, ldb, c, ldc, first_lanes(n - 8));
  kRowTiles<1>[rows - 1](k, a, lda, b, ldb, c, ldc, first_lanes(n));
}

// Calls body(begin, rows) for groups of at most kTileRows rows of nearly equal size: a last group of one row would run
// at the speed of its two chains.
template <class Body>
void for_row_groups(int64_t m, Body body) {
  const int64_t groups = (m + kTileRows - 1) / kTileRows;
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

}  // namespace

void gemm_narrow(bool ta, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                 float* c, int64_t ldc) {
  if (!ta) {
    for_row_groups(m, [&](int64_t begin, int64_t rows) {
      rows_by_columns(rows, n, k, a + begin * lda, lda, b, ldb, c + begin * ldc, ldc);
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

void gemm_shallow(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                  int64_t ldc, float* packed) {
  for (int64_t j = 0; j < n; ++j) {
    float* block = packed + j / kNarrow * k * kNarrow + j % kNarrow;
    for (int64_t p = 0; p < k; ++p) block[p * kNarrow] = b[j * ldb + p];
  }
  for_row_groups(m, [&](int64_t begin, int64_t rows) {
    for (int64_t j = 0; j < n; j += kNarrow) {
      rows_by_columns(rows, std::min(kNarrow, n - j), k, a + begin * lda, lda, packed + j * k, kNarrow,
                      c + begin * ldc + j, ldc);
    }
  });
}

}  // namespace runnel::cpu
