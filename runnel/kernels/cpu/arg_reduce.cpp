#include <algorithm>
#include <limits>
#include <type_traits>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/reduce.h"

namespace runnel::cpu {

namespace {

constexpr int64_t kTask = 32768;  // elements worth a task of their own
constexpr int64_t kTile = 64;     // columns searched together
constexpr int64_t kLanes = 32;
constexpr int64_t kRows = 16;

// For each of `cols` columns of x[rows, step between rows], the first row with the best value; `best` goes on from what
// it holds. Positions are of as many bits as values where that lets the loop run in vectors.
template <class T, class C, class P>
RUNNEL_INLINE void columns_body(bool largest, const T* x, int64_t rows, int64_t step, int64_t cols, C* best, P* index) {
  for (int64_t i = 0; i < rows; ++i, x += step) {
    if (largest) {
      RUNNEL_IVDEP
      for (int64_t j = 0; j < cols; ++j) {
        const C v = static_cast<C>(x[j]);
        const bool better = v > best[j];
        best[j] = better ? v : best[j];
        index[j] = better ? static_cast<P>(i) : index[j];
      }
    } else {
      RUNNEL_IVDEP
      for (int64_t j = 0; j < cols; ++j) {
        const C v = static_cast<C>(x[j]);
        const bool better = v < best[j];
        best[j] = better ? v : best[j];
        index[j] = better ? static_cast<P>(i) : index[j];
      }
    }
  }
}
template <class T, class C, class P>
void columns_base(bool largest, const T* x, int64_t rows, int64_t step, int64_t cols, C* best, P* index) {
  columns_body(largest, x, rows, step, cols, best, index);
}
template <class T, class C, class P>
RUNNEL_AVX2 void columns_avx2(bool largest, const T* x, int64_t rows, int64_t step, int64_t cols, C* best, P* index) {
  columns_body(largest, x, rows, step, cols, best, index);
}

// The same for kRows short rows at a time, each of n elements behind the one before: whether an element is the best so
// far is no branch, which would be guessed wrong.
template <class T, class C, class P>
RUNNEL_INLINE void rows_body(bool largest, const T* x, int64_t n, C* best, P* index) {
  for (int64_t i = 0; i < n; ++i) {
    C column[kRows];
    for (int64_t j = 0; j < kRows; ++j) column[j] = static_cast<C>(x[j * n + i]);
    RUNNEL_IVDEP
    for (int64_t j = 0; j < kRows; ++j) {
      const C v = column[j];
      const bool better = largest ? v > best[j] : v < best[j];
      best[j] = better ? v : best[j];
      index[j] = better ? static_cast<P>(i) : index[j];
    }
  }
}
template <class T, class C, class P>
void rows_base(bool largest, const T* x, int64_t n, C* best, P* index) {
  if (largest) return rows_body(true, x, n, best, index);
  rows_body(false, x, n, best, index);
}
template <class T, class C, class P>
RUNNEL_AVX2 void rows_avx2(bool largest, const T* x, int64_t n, C* best, P* index) {
  if (largest) return rows_body(true, x, n, best, index);
  rows_body(false, x, n, best, index);
}

// P: of positions.
template <class P, class T, class Index>
void arg_reduce_as(bool largest, const T* x, int64_t outer, int64_t reduced, int64_t inner, Index* y) {
  using C = compute_t<T>;
  using L = std::numeric_limits<C>;
  const C lowest = L::has_infinity ? static_cast<C>(-L::infinity()) : L::lowest();
  const C highest = L::has_infinity ? L::infinity() : L::max();
  const C worst = largest ? lowest : highest;
  const auto search = has_avx2() ? &columns_avx2<T, C, P> : &columns_base<T, C, P>;
  if (inner == 1 && reduced < 4 * kLanes && outer >= kRows) {
    const auto search_rows = has_avx2() ? &rows_avx2<T, C, P> : &rows_base<T, C, P>;
    return parallel_for((outer + kRows - 1) / kRows, std::max<int64_t>(1, kTask / (reduced * kRows + 1)),
                        [&](int64_t begin, int64_t end) {
                          C best[kRows];
                          P index[kRows];
                          for (int64_t block = begin; block < end; ++block) {
                            // The last block goes over rows that were searched before.
                            const int64_t first = std::min(block * kRows, outer - kRows);
                            std::fill(best, best + kRows, worst);
                            std::fill(index, index + kRows, P(0));
                            search_rows(largest, x + first * reduced, reduced, best, index);
                            const int64_t done = block * kRows - first;
                            for (int64_t j = done; j < kRows; ++j) y[first + j] = static_cast<Index>(index[j]);
                          }
                        });
  }
  // A long row is searched as a few columns, of which the best is taken, the first of several.
  const int64_t lanes = inner == 1 && reduced >= 4 * kLanes ? kLanes : 1;
  const int64_t columns = std::min<int64_t>(inner, kTile);
  const int64_t tiles = columns == 0 ? 0 : (inner + columns - 1) / columns;
  const int64_t work = std::max<int64_t>(1, reduced * columns);
  parallel_for(outer * tiles, std::max<int64_t>(1, kTask / work), [&](int64_t begin, int64_t end) {
    C best[kTile];
    P index[kTile];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / tiles, at = task % tiles * columns, cols = std::min(columns, inner - at);
      const T* p = x + o * reduced * inner + at;
      std::fill(best, best + cols * lanes, worst);
      std::fill(index, index + cols * lanes, P(0));
      if (lanes == 1) {
        search(largest, p, reduced, inner, cols, best, index);
        for (int64_t j = 0; j < cols; ++j) y[o * inner + at + j] = static_cast<Index>(index[j]);
        continue;
      }
      const int64_t rows = reduced / lanes;
      search(largest, p, rows, lanes, lanes, best, index);
      C most = worst;
      int64_t first = 0;
      for (int64_t j = 0; j < lanes; ++j) {
        const int64_t place = static_cast<int64_t>(index[j]) * lanes + j;
        const bool better = largest ? best[j] > most : best[j] < most;
        if (better || (best[j] == most && most != worst && place < first)) most = best[j], first = place;
      }
      for (int64_t i = rows * lanes; i < reduced; ++i) {
        const C v = static_cast<C>(p[i]);
        if (largest ? v > most : v < most) most = v, first = i;
      }
      y[o] = static_cast<Index>(first);
    }
  });
}

}  // namespace

template <class T, class Index>
void arg_reduce(bool largest, const T* x, int64_t outer, int64_t reduced, int64_t inner, Index* y) {
  const bool wide = sizeof(compute_t<T>) == 8 || reduced > std::numeric_limits<int32_t>::max();
  (wide ? arg_reduce_as<int64_t, T, Index> : arg_reduce_as<int32_t, T, Index>)(largest, x, outer, reduced, inner, y);
}

#define RUNNEL_ARG(T)                                                                       \
  template RUNNEL_API void arg_reduce(bool, const T*, int64_t, int64_t, int64_t, int32_t*); \
  template RUNNEL_API void arg_reduce(bool, const T*, int64_t, int64_t, int64_t, int64_t*);
RUNNEL_ARG(float)
RUNNEL_ARG(double)
RUNNEL_ARG(Half)
RUNNEL_ARG(BFloat16)
RUNNEL_ARG(int8_t)
RUNNEL_ARG(int16_t)
RUNNEL_ARG(int32_t)
RUNNEL_ARG(int64_t)
RUNNEL_ARG(uint8_t)
RUNNEL_ARG(uint16_t)
RUNNEL_ARG(uint32_t)
RUNNEL_ARG(uint64_t)
RUNNEL_ARG(bool)

}  // namespace runnel::cpu
