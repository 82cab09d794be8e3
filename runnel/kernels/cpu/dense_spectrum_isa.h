// Rotations of rows for one instruction set (see foreach_isa.h). T is float or double.

#include "runnel/kernels/cpu/simd_double_isa.h"

// A sweep of plane rotations: rotation k turns rows first + k and first + k + 1, or, downwards, first - k and
// first - k - 1: (x, y) becomes (c x + s y, c y - s x). Columns [0, n) of rows that are ld apart.

template <int V, class T>
RUNNEL_ISA_TARGET void rotate_strip(int64_t count, const T* cosines, const T* sines, int64_t step, T* row) {
  constexpr int N = kLanes<T>;
  decltype(splat(T(0))) x[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) x[v] = load(row + v * N);
  for (int64_t k = 0; k < count; ++k) {
    const auto c = splat(cosines[k]), s = splat(sines[k]);
    T* next = row + step;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const auto y = load(next + v * N);
      store(row + v * N, fma(s, y, c * x[v]));
      x[v] = fma(-s, x[v], c * y);
    }
    row = next;
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) store(row + v * N, x[v]);
}

// Columns are a multiple of N: rows are padded.
template <class T>
RUNNEL_ISA_TARGET void rotate_rows(int64_t count, const T* cosines, const T* sines, int64_t step, T* row,
                                   int64_t columns) {
  constexpr int N = kLanes<T>;
  int64_t j = 0;
  for (; j + 4 * N <= columns; j += 4 * N) rotate_strip<4>(count, cosines, sines, step, row + j);
  for (; j + N <= columns; j += N) rotate_strip<1>(count, cosines, sines, step, row + j);
}

template <class T>
RUNNEL_ISA_TARGET T spectrum_dot(int64_t n, const T* x, const T* y) {
  constexpr int N = kLanes<T>;
  auto a = splat(T(0)), b = a;
  int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    a = fma(load(x + i), load(y + i), a);
    b = fma(load(x + i + N), load(y + i + N), b);
  }
  for (; i + N <= n; i += N) a = fma(load(x + i), load(y + i), a);
  if (i < n) b = fma(load_n(x + i, n - i), load_n(y + i, n - i), b);
  return sum(a + b);
}

// y += a * x + b * z
template <class T>
RUNNEL_ISA_TARGET void add_two(int64_t n, T a, const T* x, T b, const T* z, T* y) {
  constexpr int N = kLanes<T>;
  const auto f = splat(a), g = splat(b);
  int64_t i = 0;
  for (; i + N <= n; i += N) store(y + i, fma(g, load(z + i), fma(f, load(x + i), load(y + i))));
  if (i < n) {
    const int64_t r = n - i;
    store_n(y + i, fma(g, load_n(z + i, r), fma(f, load_n(x + i, r), load_n(y + i, r))), r);
  }
}
