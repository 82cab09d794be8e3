#include "runnel/kernels/cpu/pool.h"

#include <limits>
#include <type_traits>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {
namespace {

// Channels are the vector: every loop below runs over the channels of one cell. The forward passes write rows of the
// output. The backward passes cut the rows of the input: a task owns some rows of dx, visits every window that touches
// them, in order, and writes to its own rows only, so windows may overlap and no two tasks meet.

PoolShape three_dims(PoolShape s) {
  if (s.dims == 3) return s;
  auto shift = [](PoolShape::Dims& d, int64_t first) { d = {first, d[0], d[1]}; };
  shift(s.in, 1);
  shift(s.kernel, 1);
  shift(s.stride, 1);
  shift(s.pad_before, 0);
  shift(s.pad_after, 0);
  s.dims = 3;
  return s;
}

struct Range {
  int64_t begin, end;
};

struct Geometry {
  PoolShape s;
  int64_t od, oh, ow;
  explicit Geometry(const PoolShape& shape) : s(three_dims(shape)), od(s.out(0)), oh(s.out(1)), ow(s.out(2)) {}

  // The cells of the input that window `out` covers along dimension d.
  RUNNEL_INLINE Range window(int d, int64_t out) const {
    const int64_t begin = out * s.stride[d] - s.pad_before[d];
    return {std::max<int64_t>(begin, 0), std::min(begin + s.kernel[d], s.in[d])};
  }
  // The windows that touch cells [begin, end) along dimension d.
  Range windows(int d, int64_t begin, int64_t end, int64_t out) const {
    const int64_t first = begin + s.pad_before[d] - s.kernel[d] + 1;
    const int64_t low = first <= 0 ? 0 : (first + s.stride[d] - 1) / s.stride[d];
    const int64_t high = (end - 1 + s.pad_before[d]) / s.stride[d] + 1;
    return {low, std::min(high, out)};
  }
  RUNNEL_INLINE int64_t input(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return (((n * s.in[0] + d) * s.in[1] + h) * s.in[2] + w) * s.channels;
  }
};

template <class T>
constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}

template <class T>
RUNNEL_INLINE T max_of(T a, T b) {
  const T larger = a > b ? a : b;  // b if it is NaN
  if constexpr (std::is_floating_point_v<T>) return a != a ? a : larger;
  return larger;
}

// y = f(y, x) over the cells of one window after y = start.
template <class T, bool kMax>
RUNNEL_INLINE int64_t reduce_window(const Geometry& g, const T* x, int64_t n, Range d, Range h, Range w, T* y) {
  const int64_t channels = g.s.channels;
  int64_t cells = 0;
  for (int64_t i = d.begin; i < d.end; ++i) {
    for (int64_t j = h.begin; j < h.end; ++j) {
      const T* in = x + g.input(n, i, j, w.begin);
      for (int64_t k = w.begin; k < w.end; ++k, in += channels) {
        if (cells++ == 0) {
          for (int64_t c = 0; c < channels; ++c) y[c] = in[c];
        } else if (kMax) {
          RUNNEL_IVDEP
          for (int64_t c = 0; c < channels; ++c) y[c] = max_of(y[c], in[c]);
        } else {
          RUNNEL_IVDEP
          for (int64_t c = 0; c < channels; ++c) y[c] += in[c];
        }
      }
    }
  }
  return cells;
}

// Two by two cells at once: the common case, without passing through y.
template <class T>
RUNNEL_INLINE void max_four(const T* a, const T* b, int64_t channels, T* y) {
  RUNNEL_IVDEP
  for (int64_t c = 0; c < channels; ++c) {
    y[c] = max_of(max_of(a[c], a[c + channels]), max_of(b[c], b[c + channels]));
  }
}

template <class T, bool kMax>
RUNNEL_INLINE void forward_rows(const Geometry& g, const T* x, T* y, int64_t begin, int64_t end) {
  const int64_t channels = g.s.channels;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n = row / (g.od * g.oh);
    const Range d = g.window(0, row / g.oh % g.od), h = g.window(1, row % g.oh);
    for (int64_t ow = 0; ow < g.ow; ++ow) {
      const Range w = g.window(2, ow);
      T* out = y + (row * g.ow + ow) * channels;
      if (kMax && d.end - d.begin == 1 && h.end - h.begin == 2 && w.end - w.begin == 2) {
        const T* in = x + g.input(n, d.begin, h.begin, w.begin);
        max_four(in, in + g.s.in[2] * channels, channels, out);
        continue;
      }
      const int64_t cells = reduce_window<T, kMax>(g, x, n, d, h, w, out);
      if (cells == 0) {
        for (int64_t c = 0; c < channels; ++c) out[c] = kMax ? lowest<T>() : T{};
      } else if (!kMax) {
        const T count = static_cast<T>(cells);
        RUNNEL_IVDEP
        for (int64_t c = 0; c < channels; ++c) out[c] = out[c] / count;
      }
    }
  }
}

// Rows [begin, end) of dx, counted over batch and depth in `plane` = n * depth + d, all of one plane.
template <class T, bool kMax>
RUNNEL_INLINE void backward_block(const Geometry& g, const T* x, const T* y, const T* dy, T* dx, T* rest, int64_t plane,
                                  int64_t begin, int64_t end) {
  const PoolShape& s = g.s;
  const int64_t channels = s.channels, n = plane / s.in[0], depth = plane % s.in[0];
  std::fill(dx + g.input(n, depth, begin, 0), dx + g.input(n, depth, end, 0), T{});
  const Range ods = g.windows(0, depth, depth + 1, g.od), ohs = g.windows(1, begin, end, g.oh);
  for (int64_t od = ods.begin; od < ods.end; ++od) {
    const Range d = g.window(0, od);
    for (int64_t oh = ohs.begin; oh < ohs.end; ++oh) {
      const Range h = g.window(1, oh);
      for (int64_t ow = 0; ow < g.ow; ++ow) {
        const Range w = g.window(2, ow);
        const int64_t at = (((n * g.od + od) * g.oh + oh) * g.ow + ow) * channels;
        if (!kMax) {
          const T count = static_cast<T>((d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin));
          for (int64_t c = 0; c < channels; ++c) rest[c] = dy[at + c] / count;
          for (int64_t j = std::max(h.begin, begin); j < std::min(h.end, end); ++j) {
            for (int64_t k = w.begin; k < w.end; ++k) {
              T* to = dx + g.input(n, depth, j, k);
              RUNNEL_IVDEP
              for (int64_t c = 0; c < channels; ++c) to[c] += rest[c];
            }
          }
          continue;
        }
        // `rest` is the gradient not given away yet: the first cell equal to the maximum takes all of it. Cells of
        // other tasks take theirs without writing. (A NaN maximum equals nothing and is not below: !(x < y).)
        for (int64_t c = 0; c < channels; ++c) rest[c] = dy[at + c];
        for (int64_t i = d.begin; i < d.end; ++i) {
          for (int64_t j = h.begin; j < h.end; ++j) {
            const bool own = i == depth && j >= begin && j < end;
            for (int64_t k = w.begin; k < w.end; ++k) {
              const int64_t cell = g.input(n, i, j, k);
              const T *in = x + cell, *top = y + at;
              if (own) {
                T* to = dx + cell;
                RUNNEL_IVDEP
                for (int64_t c = 0; c < channels; ++c) {
                  const bool below = in[c] < top[c];
                  to[c] += below ? T{} : rest[c];
                  rest[c] = below ? rest[c] : T{};
                }
              } else {
                RUNNEL_IVDEP
                for (int64_t c = 0; c < channels; ++c) rest[c] = in[c] < top[c] ? rest[c] : T{};
              }
            }
          }
        }
      }
    }
  }
}

template <class T, bool kMax>
RUNNEL_AVX2 RUNNEL_FLATTEN void forward_rows_avx2(const Geometry& g, const T* x, T* y, int64_t begin, int64_t end) {
  forward_rows<T, kMax>(g, x, y, begin, end);
}
template <class T, bool kMax>
RUNNEL_AVX2 RUNNEL_FLATTEN void backward_block_avx2(const Geometry& g, const T* x, const T* y, const T* dy, T* dx,
                                                    T* rest, int64_t plane, int64_t begin, int64_t end) {
  backward_block<T, kMax>(g, x, y, dy, dx, rest, plane, begin, end);
}

template <class T, bool kMax>
void forward(const PoolShape& shape, const T* x, T* y) {
  if (shape.out_size() == 0) return;
  const Geometry g(shape);
  const int64_t rows = g.s.batch * g.od * g.oh;
  const int64_t cells = g.s.kernel[0] * g.s.kernel[1] * g.s.kernel[2];
  const int64_t grain = std::max<int64_t>(1, (64 << 10) / std::max<int64_t>(1, g.ow * g.s.channels * cells));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    has_avx2() ? forward_rows_avx2<T, kMax>(g, x, y, begin, end) : forward_rows<T, kMax>(g, x, y, begin, end);
  });
}

template <class T, bool kMax>
void backward(const PoolShape& shape, const T* x, const T* y, const T* dy, T* dx) {
  if (shape.in_size() == 0) return;
  const Geometry g(shape);
  const PoolShape& s = g.s;
  // A block is a run of rows of one plane. Where windows overlap across blocks their cells are read twice, so blocks
  // are at least four windows tall; where they cannot, blocks start where windows do.
  const int64_t row_size = std::max<int64_t>(1, s.in[2] * s.channels);
  const int64_t step = s.stride[1];
  const int64_t tall = std::max<int64_t>({(32 << 10) / row_size, 4 * s.kernel[1], step}) / step * step;
  const int64_t offset = s.pad_before[1] % step;  // windows start at rows -offset modulo step
  const int64_t per_plane = std::max<int64_t>(1, (s.in[1] + offset + tall - 1) / tall);
  const int64_t planes = s.batch * s.in[0];
  const int64_t grain = std::max<int64_t>(1, (64 << 10) / (std::min(tall, s.in[1]) * row_size));
  parallel_for(planes * per_plane, grain, [&](int64_t first, int64_t last) {
    ScratchFrame frame;
    T* rest = frame.get<T>(s.channels);
    for (int64_t i = first; i < last; ++i) {
      const int64_t block = i % per_plane;
      const int64_t begin = std::max<int64_t>(0, block * tall - offset),
                    end = std::min(s.in[1], (block + 1) * tall - offset);
      if (begin >= end) continue;
      has_avx2() ? backward_block_avx2<T, kMax>(g, x, y, dy, dx, rest, i / per_plane, begin, end)
                 : backward_block<T, kMax>(g, x, y, dy, dx, rest, i / per_plane, begin, end);
    }
  });
}

}  // namespace

template <class T>
void max_pool_forward(const PoolShape& shape, const T* x, T* y) {
  forward<T, true>(shape, x, y);
}
template <class T>
void max_pool_backward(const PoolShape& shape, const T* x, const T* y, const T* dy, T* dx) {
  backward<T, true>(shape, x, y, dy, dx);
}
template <class T>
void avg_pool_forward(const PoolShape& shape, const T* x, T* y) {
  forward<T, false>(shape, x, y);
}
template <class T>
void avg_pool_backward(const PoolShape& shape, const T* dy, T* dx) {
  backward<T, false>(shape, nullptr, nullptr, dy, dx);
}

#define RUNNEL_MAX(T)                                                           \
  template RUNNEL_API void max_pool_forward<T>(const PoolShape&, const T*, T*); \
  template RUNNEL_API void max_pool_backward<T>(const PoolShape&, const T*, const T*, const T*, T*);
RUNNEL_MAX(float)
RUNNEL_MAX(double)
RUNNEL_MAX(int8_t)
RUNNEL_MAX(int16_t)
RUNNEL_MAX(int32_t)
RUNNEL_MAX(int64_t)
RUNNEL_MAX(uint8_t)
RUNNEL_MAX(uint16_t)
RUNNEL_MAX(uint32_t)
RUNNEL_MAX(uint64_t)
#undef RUNNEL_MAX
#define RUNNEL_POOL(T)                                                          \
  template RUNNEL_API void avg_pool_forward<T>(const PoolShape&, const T*, T*); \
  template RUNNEL_API void avg_pool_backward<T>(const PoolShape&, const T*, T*);
RUNNEL_POOL(float)
RUNNEL_POOL(double)
#undef RUNNEL_POOL

}  // namespace runnel::cpu
