#include <algorithm>
#include <limits>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/reduce.h"

namespace runnel::cpu {

namespace {

constexpr int64_t kTask = 32768;  // elements worth a task of their own
constexpr int64_t kTile = 64;     // columns searched together

}  // namespace

template <class T, class Index>
void arg_reduce(bool largest, const T* x, int64_t outer, int64_t reduced, int64_t inner, Index* y) {
  using C = compute_t<T>;
  using L = std::numeric_limits<C>;
  const C lowest = L::has_infinity ? static_cast<C>(-L::infinity()) : L::lowest();
  const C highest = L::has_infinity ? L::infinity() : L::max();
  const C worst = largest ? lowest : highest;
  const int64_t columns = std::min<int64_t>(inner, kTile);
  const int64_t tiles = columns == 0 ? 0 : (inner + columns - 1) / columns;
  const int64_t work = std::max<int64_t>(1, reduced * columns);
  parallel_for(outer * tiles, std::max<int64_t>(1, kTask / work), [&](int64_t begin, int64_t end) {
    C best[kTile];
    Index index[kTile];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / tiles, at = task % tiles * columns, cols = std::min(columns, inner - at);
      std::fill(best, best + cols, worst);
      std::fill(index, index + cols, Index(0));
      const T* p = x + o * reduced * inner + at;
      for (int64_t i = 0; i < reduced; ++i, p += inner) {
        for (int64_t j = 0; j < cols; ++j) {
          const C v = static_cast<C>(p[j]);
          const bool better = largest ? v > best[j] : v < best[j];
          best[j] = better ? v : best[j];
          index[j] = better ? static_cast<Index>(i) : index[j];
        }
      }
      std::copy(index, index + cols, y + o * inner + at);
    }
  });
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
