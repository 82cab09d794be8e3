#include "runnel/kernels/cpu/batch_norm.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu {
namespace {

// Few channels make rows too short to vectorise: `fold` rows are taken as one of `width` elements, and every
// per-channel array is repeated to that width. The last such row may be short.
struct Layout {
  int64_t channels, fold, width, size;

  Layout(int64_t rows, int64_t c) : channels(c), fold(c >= 32 ? 1 : 64 / c), width(c * fold), size(rows * c) {}

  // Elements per piece: fits a second-level cache, whole wide rows.
  int64_t piece() const { return std::max<int64_t>(1, 32768 / width) * width; }
};

template <class T>
std::vector<T> tiled(const T* values, const Layout& l) {
  std::vector<T> tile(static_cast<size_t>(l.width));
  for (int64_t i = 0; i < l.width; ++i) tile[static_cast<size_t>(i)] = values[i % l.channels];
  return tile;
}

// Adds the repetitions of each channel up, in order.
template <class T>
void fold_to_channels(const T* wide, const Layout& l, T* channels) {
  for (int64_t c = 0; c < l.channels; ++c) {
    T sum = 0;
    for (int64_t i = c; i < l.width; i += l.channels) sum += wide[i];
    channels[c] = sum;
  }
}

// The bodies work on one piece: n elements, starting at a wide row.
template <class T>
RUNNEL_INLINE void sum_body(const T* x, int64_t n, int64_t width, T* sum) {
  for (int64_t r = 0; r < n; r += width) {
    const int64_t m = std::min(width, n - r);
    RUNNEL_IVDEP
    for (int64_t i = 0; i < m; ++i) sum[i] += x[r + i];
  }
}
template <class T>
RUNNEL_INLINE void squares_body(const T* x, int64_t n, int64_t width, const T* mean, T* sum) {
  for (int64_t r = 0; r < n; r += width) {
    const int64_t m = std::min(width, n - r);
    RUNNEL_IVDEP
    for (int64_t i = 0; i < m; ++i) {
      const T d = x[r + i] - mean[i];
      sum[i] += d * d;
    }
  }
}
template <class T>
RUNNEL_INLINE void normalize_body(const T* x, int64_t n, int64_t width, const T* mean, const T* factor, const T* offset,
                                  T* y) {
  for (int64_t r = 0; r < n; r += width) {
    const int64_t m = std::min(width, n - r);
    RUNNEL_IVDEP
    for (int64_t i = 0; i < m; ++i) y[r + i] = (x[r + i] - mean[i]) * factor[i] + offset[i];
  }
}
template <class T>
RUNNEL_INLINE void products_body(const T* dy, const T* x, int64_t n, int64_t width, const T* mean, T* sum_dy,
                                 T* sum_dy_x) {
  for (int64_t r = 0; r < n; r += width) {
    const int64_t m = std::min(width, n - r);
    RUNNEL_IVDEP
    for (int64_t i = 0; i < m; ++i) {
      sum_dy[i] += dy[r + i];
      sum_dy_x[i] += dy[r + i] * (x[r + i] - mean[i]);
    }
  }
}
template <class T>
RUNNEL_INLINE void backward_body(const T* dy, const T* x, int64_t n, int64_t width, const T* mean, const T* factor,
                                 const T* shift, const T* slope, T* dx) {
  for (int64_t r = 0; r < n; r += width) {
    const int64_t m = std::min(width, n - r);
    RUNNEL_IVDEP
    for (int64_t i = 0; i < m; ++i) {
      dx[r + i] = factor[i] * (dy[r + i] - shift[i] - (x[r + i] - mean[i]) * slope[i]);
    }
  }
}

#define RUNNEL_CLONES(name)                             \
  template <class... A>                                 \
  RUNNEL_FLATTEN void name##_base(A... a) {             \
    name##_body(a...);                                  \
  }                                                     \
  template <class... A>                                 \
  RUNNEL_AVX2 RUNNEL_FLATTEN void name##_avx2(A... a) { \
    name##_body(a...);                                  \
  }                                                     \
  template <class... A>                                 \
  void name(A... a) {                                   \
    has_avx2() ? name##_avx2(a...) : name##_base(a...); \
  }
RUNNEL_CLONES(sum)
RUNNEL_CLONES(squares)
RUNNEL_CLONES(normalize)
RUNNEL_CLONES(products)
RUNNEL_CLONES(backward)
#undef RUNNEL_CLONES

int64_t num_pieces(const Layout& l) { return (l.size + l.piece() - 1) / l.piece(); }

}  // namespace

template <class T>
void channel_moments(const T* x, int64_t rows, int64_t channels, T* mean, T* variance) {
  std::fill_n(mean, channels, T(0));
  std::fill_n(variance, channels, T(0));
  if (rows == 0 || channels == 0) return;
  const Layout l(rows, channels);
  const int64_t pieces = num_pieces(l);
  // Every piece is read once from memory: its mean, then the squares around that mean from the cache.
  std::vector<T> means(static_cast<size_t>(pieces * channels));
  std::vector<T> squares_of(means.size());
  parallel_for(l.size, l.piece(), [&](int64_t begin, int64_t end) {
    const int64_t p = begin / l.piece();
    const int64_t rows = (end - begin) / channels;
    const T count = static_cast<T>(rows);
    T* piece_mean = means.data() + p * channels;
    std::vector<T> wide(static_cast<size_t>(l.width), T(0));
    sum(x + begin, end - begin, l.width, wide.data());
    fold_to_channels(wide.data(), l, piece_mean);
    for (int64_t c = 0; c < channels; ++c) piece_mean[c] /= count;
    const std::vector<T> tile = tiled(piece_mean, l);
    std::fill(wide.begin(), wide.end(), T(0));
    squares(x + begin, end - begin, l.width, tile.data(), wide.data());
    fold_to_channels(wide.data(), l, squares_of.data() + p * channels);
  });
  T total = 0;  // rows so far
  for (int64_t p = 0; p < pieces; ++p) {
    const int64_t rows = (std::min(l.size, (p + 1) * l.piece()) - p * l.piece()) / channels;
    const T count = static_cast<T>(rows);
    const T all = total + count;
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<size_t>(p * channels + c);
      const T delta = means[at] - mean[c];
      variance[c] += squares_of[at] + delta * delta * (total * count / all);
      mean[c] += delta * (count / all);
    }
    total = all;
  }
  for (int64_t c = 0; c < channels; ++c) variance[c] /= total;
}

template <class T>
void normalize_channels(const T* x, int64_t rows, int64_t channels, const T* mean, const T* factor, const T* offset,
                        T* y) {
  if (rows == 0 || channels == 0) return;
  const Layout l(rows, channels);
  const std::vector<T> m = tiled(mean, l), f = tiled(factor, l), o = tiled(offset, l);
  parallel_for(l.size, l.piece(), [&](int64_t begin, int64_t end) {
    normalize(x + begin, end - begin, l.width, m.data(), f.data(), o.data(), y + begin);
  });
}

template <class T>
void channel_products(const T* dy, const T* x, int64_t rows, int64_t channels, const T* mean, T* sum_dy, T* sum_dy_x) {
  std::fill_n(sum_dy, channels, T(0));
  std::fill_n(sum_dy_x, channels, T(0));
  if (rows == 0 || channels == 0) return;
  const Layout l(rows, channels);
  const int64_t pieces = num_pieces(l);
  const std::vector<T> m = tiled(mean, l);
  std::vector<T> sums(static_cast<size_t>(pieces * 2 * l.width), T(0));
  parallel_for(l.size, l.piece(), [&](int64_t begin, int64_t end) {
    T* mine = sums.data() + begin / l.piece() * 2 * l.width;
    products(dy + begin, x + begin, end - begin, l.width, m.data(), mine, mine + l.width);
  });
  for (int64_t p = 1; p < pieces; ++p) {
    for (int64_t i = 0; i < 2 * l.width; ++i)
      sums[static_cast<size_t>(i)] += sums[static_cast<size_t>(p * 2 * l.width + i)];
  }
  fold_to_channels(sums.data(), l, sum_dy);
  fold_to_channels(sums.data() + l.width, l, sum_dy_x);
}

template <class T>
void normalize_backward(const T* dy, const T* x, int64_t rows, int64_t channels, const T* mean, const T* factor,
                        const T* shift, const T* slope, T* dx) {
  if (rows == 0 || channels == 0) return;
  const Layout l(rows, channels);
  const std::vector<T> m = tiled(mean, l), f = tiled(factor, l), s = tiled(shift, l), k = tiled(slope, l);
  parallel_for(l.size, l.piece(), [&](int64_t begin, int64_t end) {
    backward(dy + begin, x + begin, end - begin, l.width, m.data(), f.data(), s.data(), k.data(), dx + begin);
  });
}

#define RUNNEL_INSTANTIATE(T)                                                                     \
  template void channel_moments(const T*, int64_t, int64_t, T*, T*);                              \
  template void normalize_channels(const T*, int64_t, int64_t, const T*, const T*, const T*, T*); \
  template void channel_products(const T*, const T*, int64_t, int64_t, const T*, T*, T*);         \
  template void normalize_backward(const T*, const T*, int64_t, int64_t, const T*, const T*, const T*, const T*, T*);
RUNNEL_INSTANTIATE(float)
RUNNEL_INSTANTIATE(double)
#undef RUNNEL_INSTANTIATE

}  // namespace runnel::cpu
