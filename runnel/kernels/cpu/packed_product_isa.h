// Products with packed columns for one instruction set (see foreach_isa.h). Every element of C is one chain of
// multiply-adds over k in order, whatever tile computes it.

inline constexpr int kTileVectors = RUNNEL_ISA_AVX512 ? 4 : 2;
inline constexpr int kTileRows = RUNNEL_ISA_AVX512 ? 6 : 4;  // times vectors: most of the registers
inline constexpr int64_t kPanelColumns = kTileVectors * W;
inline constexpr int64_t kPanelDepth = 128;  // what of a panel stays in the first-level cache between groups of rows

// C[R, V vectors] += A[R,k] * b[k, V vectors]; of the last vector the first `last` columns exist.
template <int R, int V>
RUNNEL_ISA_TARGET void packed_tile(int64_t k, const float* a, int64_t lda, const float* b, float* c, int64_t ldc,
                                   int64_t last) {
  F sum[R][V];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v + 1 < V; ++v) sum[i][v] = load(c + i * ldc + v * W);
    const float* p = c + i * ldc + (V - 1) * W;
    sum[i][V - 1] = last == W ? load(p) : load_n(p, last);
  }
  for (int64_t p = 0; p < k; ++p) {
    F row[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) row[v] = load(b + (p * V + v) * W);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const F x = splat(a[i * lda + p]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[i][v] = fma(x, row[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v + 1 < V; ++v) store(c + i * ldc + v * W, sum[i][v]);
    float* p = c + i * ldc + (V - 1) * W;
    if (last == W) {
      store(p, sum[i][V - 1]);
    } else {
      store_n(p, sum[i][V - 1], last);
    }
  }
}

using PackedTile = void (*)(int64_t, const float*, int64_t, const float*, float*, int64_t, int64_t);
struct PackedTiles {
  PackedTile of[kTileRows][kTileVectors];
};
template <int R, int V>
constexpr void add_packed_tiles(PackedTiles& tiles) {
  tiles.of[R - 1][V - 1] = packed_tile<R, V>;
  if constexpr (V < kTileVectors) {
    add_packed_tiles<R, V + 1>(tiles);
  } else if constexpr (R < kTileRows) {
    add_packed_tiles<R + 1, 1>(tiles);
  }
}
constexpr PackedTiles make_packed_tiles() {
  PackedTiles tiles{};
  add_packed_tiles<1, 1>(tiles);
  return tiles;
}
inline constexpr PackedTiles kPackedTiles = make_packed_tiles();

// C[m, columns] += A[m,k] * panel, at most kPanelColumns columns. The panel is [k, whole vectors].
RUNNEL_ISA_TARGET void add_panel_product(int64_t m, int64_t k, const float* a, int64_t lda, const float* panel,
                                         float* c, int64_t ldc, int64_t columns) {
  const int64_t vectors = (columns + W - 1) / W, last = columns - (vectors - 1) * W;
  const int64_t groups = (m + kTileRows - 1) / kTileRows;
  for (int64_t p = 0; p < k; p += kPanelDepth) {
    const int64_t depth = k - p < kPanelDepth ? k - p : kPanelDepth;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t begin = m * g / groups, rows = m * (g + 1) / groups - begin;
      kPackedTiles.of[rows - 1][vectors - 1](depth, a + begin * lda + p, lda, panel + p * vectors * W, c + begin * ldc,
                                             ldc, last);
    }
  }
}
