// Rotations of rows for one instruction set (see foreach_isa.h).

// A sweep of plane rotations: rotation k turns rows first + k and first + k + 1, or, downwards, first - k and
// first - k - 1: (x, y) becomes (c x + s y, c y - s x). Columns [0, n) of rows that are ld apart, at most kRotated.
inline constexpr int64_t kRotated = 8 * W;

template <int V>
RUNNEL_ISA_TARGET void rotate_strip(int64_t count, const float* cosines, const float* sines, int64_t step, float* row) {
  F x[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) x[v] = load(row + v * W);
  for (int64_t k = 0; k < count; ++k) {
    const F c = splat(cosines[k]), s = splat(sines[k]);
    float* next = row + step;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const F y = load(next + v * W);
      store(row + v * W, fma(s, y, c * x[v]));
      x[v] = fma(-s, x[v], c * y);
    }
    row = next;
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) store(row + v * W, x[v]);
}

// Columns are a multiple of W: rows are padded.
RUNNEL_ISA_TARGET void rotate_rows(int64_t count, const float* cosines, const float* sines, int64_t step, float* row,
                                   int64_t columns) {
  int64_t j = 0;
  for (; j + 4 * W <= columns; j += 4 * W) rotate_strip<4>(count, cosines, sines, step, row + j);
  for (; j + W <= columns; j += W) rotate_strip<1>(count, cosines, sines, step, row + j);
}

RUNNEL_ISA_TARGET float spectrum_dot(int64_t n, const float* x, const float* y) {
  F a = {}, b = {};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    a = fma(load(x + i), load(y + i), a);
    b = fma(load(x + i + W), load(y + i + W), b);
  }
  for (; i + W <= n; i += W) a = fma(load(x + i), load(y + i), a);
  if (i < n) b = fma(load_n(x + i, n - i), load_n(y + i, n - i), b);
  return sum(a + b);
}

// y += a * x + b * z
RUNNEL_ISA_TARGET void add_two(int64_t n, float a, const float* x, float b, const float* z, float* y) {
  const F f = splat(a), g = splat(b);
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, fma(g, load(z + i), fma(f, load(x + i), load(y + i))));
  if (i < n) {
    const int64_t r = n - i;
    store_n(y + i, fma(g, load_n(z + i, r), fma(f, load_n(x + i, r), load_n(y + i, r))), r);
  }
}
