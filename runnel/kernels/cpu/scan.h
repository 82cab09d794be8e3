#pragma once

// Running folds along the middle of three dimensions, over plain memory; every line is folded in order on one thread.

#include <algorithm>
#include <cstdint>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"

namespace runnel::cpu {

struct ScanShape {
  int64_t outer, n, inner;
  bool exclusive, reverse;
};

// y[o, i, j] = fold over the elements before i (and i itself unless exclusive), starting from `identity`.
// F{}(a, x) combines two values of the type T computes in.
template <class F, class T>
void scan(const ScanShape& s, const T* x, compute_t<T> identity, T* y) {
  using C = compute_t<T>;
  constexpr int64_t kTile = 64;     // columns carried together
  constexpr int64_t kTask = 16384;  // elements worth a task of their own
  if (s.n == 0 || s.inner == 0) return;
  const int64_t tiles = (s.inner + kTile - 1) / kTile;
  const int64_t work = s.n * std::min(s.inner, kTile);
  parallel_for(s.outer * tiles, std::max<int64_t>(1, kTask / work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t from = task % tiles * kTile;
      const int64_t columns = std::min(kTile, s.inner - from);
      const int64_t start = task / tiles * s.n * s.inner + from;
      C carry[kTile];
      std::fill(carry, carry + columns, identity);
      for (int64_t k = 0; k < s.n; ++k) {
        const int64_t row = start + (s.reverse ? s.n - 1 - k : k) * s.inner;
        for (int64_t j = 0; j < columns; ++j) {
          const C before = carry[j];
          carry[j] = F{}(before, static_cast<C>(x[row + j]));
          y[row + j] = static_cast<T>(s.exclusive ? before : carry[j]);
        }
      }
    }
  });
}

}  // namespace runnel::cpu
