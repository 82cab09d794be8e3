#include <algorithm>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/conv.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {
namespace {

// Two spatial dimensions are three with a leading one: the loops below know three only.
ConvShape three_dims(ConvShape s) {
  if (s.dims == 3) return s;
  auto shift = [](ConvShape::Dims& d, int64_t first) { d = {first, d[0], d[1]}; };
  shift(s.in, 1);
  shift(s.kernel, 1);
  shift(s.stride, 1);
  shift(s.dilation, 1);
  shift(s.pad_before, 0);
  shift(s.pad_after, 0);
  s.dims = 3;
  return s;
}

struct Geometry {
  ConvShape s;
  int64_t od, oh, ow, icg, ocg;
  explicit Geometry(const ConvShape& shape)
      : s(three_dims(shape)),
        od(s.out(0)),
        oh(s.out(1)),
        ow(s.out(2)),
        icg(s.in_channels / s.groups),
        ocg(s.out_channels / s.groups) {}
  bool depthwise() const { return icg == 1 && ocg == 1; }
  double pixel_work() const { return static_cast<double>(s.taps() * icg * s.out_channels) + 16; }
};

template <class T>
RUNNEL_INLINE void axpy(T* y, const T* x, T a, int64_t n) {
  RUNNEL_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

template <class T>
RUNNEL_INLINE void multiply_add(T* y, const T* a, const T* b, int64_t n) {
  RUNNEL_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}

// Output rows [begin, end), counted over batch, depth and height.
template <class T>
RUNNEL_INLINE void forward_rows(const Geometry& g, const T* x, const T* w, T* y, int64_t begin, int64_t end) {
  const ConvShape& s = g.s;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t oh = row % g.oh, od = row / g.oh % g.od, n = row / (g.oh * g.od);
    for (int64_t ow = 0; ow < g.ow; ++ow) {
      T* out = y + (row * g.ow + ow) * s.out_channels;
      for (int64_t c = 0; c < s.out_channels; ++c) out[c] = T{};
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
        const int64_t id = od * s.stride[0] - s.pad_before[0] + kd * s.dilation[0];
        if (id < 0 || id >= s.in[0]) continue;
        for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
          const int64_t ih = oh * s.stride[1] - s.pad_before[1] + kh * s.dilation[1];
          if (ih < 0 || ih >= s.in[1]) continue;
          for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
            const int64_t iw = ow * s.stride[2] - s.pad_before[2] + kw * s.dilation[2];
            if (iw < 0 || iw >= s.in[2]) continue;
            const T* in = x + (((n * s.in[0] + id) * s.in[1] + ih) * s.in[2] + iw) * s.in_channels;
            const T* tap = w + ((kd * s.kernel[1] + kh) * s.kernel[2] + kw) * g.icg * s.out_channels;
            if (g.depthwise()) {
              multiply_add(out, in, tap, s.out_channels);
              continue;
            }
            for (int64_t i = 0; i < g.icg; ++i) {
              for (int64_t q = 0; q < s.groups; ++q) {
                axpy(out + q * g.ocg, tap + i * s.out_channels + q * g.ocg, in[q * g.icg + i], g.ocg);
              }
            }
          }
        }
      }
    }
  }
}

// The output cell that reads input cell `in` through kernel cell k, or -1.
RUNNEL_INLINE int64_t output_of(const ConvShape& s, int d, int64_t in, int64_t k, int64_t out) {
  const int64_t at = in + s.pad_before[d] - k * s.dilation[d];
  if (at < 0 || at % s.stride[d] != 0 || at / s.stride[d] >= out) return -1;
  return at / s.stride[d];
}

// Input rows [begin, end). wt holds the weights as [tap, out channel, in channel of its group].
template <class T>
RUNNEL_INLINE void data_rows(const Geometry& g, const T* dy, const T* wt, T* dx, int64_t begin, int64_t end) {
  const ConvShape& s = g.s;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t ih = row % s.in[1], id = row / s.in[1] % s.in[0], n = row / (s.in[1] * s.in[0]);
    for (int64_t iw = 0; iw < s.in[2]; ++iw) {
      T* out = dx + (row * s.in[2] + iw) * s.in_channels;
      for (int64_t c = 0; c < s.in_channels; ++c) out[c] = T{};
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
        const int64_t od = output_of(s, 0, id, kd, g.od);
        if (od < 0) continue;
        for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
          const int64_t oh = output_of(s, 1, ih, kh, g.oh);
          if (oh < 0) continue;
          for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
            const int64_t ow = output_of(s, 2, iw, kw, g.ow);
            if (ow < 0) continue;
            const T* from = dy + (((n * g.od + od) * g.oh + oh) * g.ow + ow) * s.out_channels;
            const T* tap = wt + ((kd * s.kernel[1] + kh) * s.kernel[2] + kw) * g.icg * s.out_channels;
            if (g.depthwise()) {
              multiply_add(out, from, tap, s.out_channels);
              continue;
            }
            for (int64_t o = 0; o < s.out_channels; ++o) {
              axpy(out + o / g.ocg * g.icg, tap + o * g.icg, from[o], g.icg);
            }
          }
        }
      }
    }
  }
}

// One (tap, in channel of the group) pair per index: the row of dw of all output channels.
template <class T>
RUNNEL_INLINE void weight_rows(const Geometry& g, const T* x, const T* dy, T* dw, int64_t begin, int64_t end) {
  const ConvShape& s = g.s;
  std::fill(dw + begin * s.out_channels, dw + end * s.out_channels, T{});
  int64_t first = begin;
  while (first < end) {
    // Pairs of one tap together: they read the same cells.
    const int64_t tap = first / g.icg, last = std::min(end, (tap + 1) * g.icg);
    const int64_t kw = tap % s.kernel[2], kh = tap / s.kernel[2] % s.kernel[1], kd = tap / (s.kernel[2] * s.kernel[1]);
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t od = 0; od < g.od; ++od) {
        const int64_t id = od * s.stride[0] - s.pad_before[0] + kd * s.dilation[0];
        if (id < 0 || id >= s.in[0]) continue;
        for (int64_t oh = 0; oh < g.oh; ++oh) {
          const int64_t ih = oh * s.stride[1] - s.pad_before[1] + kh * s.dilation[1];
          if (ih < 0 || ih >= s.in[1]) continue;
          for (int64_t ow = 0; ow < g.ow; ++ow) {
            const int64_t iw = ow * s.stride[2] - s.pad_before[2] + kw * s.dilation[2];
            if (iw < 0 || iw >= s.in[2]) continue;
            const T* in = x + (((n * s.in[0] + id) * s.in[1] + ih) * s.in[2] + iw) * s.in_channels;
            const T* out = dy + (((n * g.od + od) * g.oh + oh) * g.ow + ow) * s.out_channels;
            if (g.depthwise()) {
              multiply_add(dw + tap * s.out_channels, in, out, s.out_channels);
              continue;
            }
            for (int64_t r = first; r < last; ++r) {
              for (int64_t q = 0; q < s.groups; ++q) {
                axpy(dw + r * s.out_channels + q * g.ocg, out + q * g.ocg, in[q * g.icg + r % g.icg], g.ocg);
              }
            }
          }
        }
      }
    }
    first = last;
  }
}

#define RUNNEL_VERSIONS(name)                                                                                 \
  template <class T>                                                                                          \
  RUNNEL_AVX2 RUNNEL_FLATTEN void name##_avx2(const Geometry& g, const T* a, const T* b, T* c, int64_t begin, \
                                              int64_t end) {                                                  \
    name(g, a, b, c, begin, end);                                                                             \
  }                                                                                                           \
  template <class T>                                                                                          \
  void name##_any(const Geometry& g, const T* a, const T* b, T* c, int64_t begin, int64_t end) {              \
    has_avx2() ? name##_avx2(g, a, b, c, begin, end) : name(g, a, b, c, begin, end);                          \
  }
RUNNEL_VERSIONS(forward_rows)
RUNNEL_VERSIONS(data_rows)
RUNNEL_VERSIONS(weight_rows)
#undef RUNNEL_VERSIONS

int64_t grain_for(double work) { return std::max<int64_t>(1, static_cast<int64_t>(200e3 / work)); }

}  // namespace

template <class T>
void conv_forward_plain(const ConvShape& shape, const T* x, const T* w, T* y) {
  const Geometry g(shape);
  if (g.s.out_size() == 0) return;
  parallel_for(g.s.batch * g.od * g.oh, grain_for(g.pixel_work() * static_cast<double>(g.ow)),
               [&](int64_t begin, int64_t end) { forward_rows_any(g, x, w, y, begin, end); });
}

template <class T>
void conv_backward_data_plain(const ConvShape& shape, const T* dy, const T* w, T* dx) {
  const Geometry g(shape);
  const ConvShape& s = g.s;
  if (s.in_size() == 0) return;
  ScratchFrame frame;
  T* wt = frame.get<T>(s.weight_size());
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    const T* from = w + tap * g.icg * s.out_channels;
    T* to = wt + tap * g.icg * s.out_channels;
    for (int64_t i = 0; i < g.icg; ++i) {
      for (int64_t o = 0; o < s.out_channels; ++o) to[o * g.icg + i] = from[i * s.out_channels + o];
    }
  }
  parallel_for(s.batch * s.in[0] * s.in[1], grain_for(g.pixel_work() * static_cast<double>(s.in[2])),
               [&](int64_t begin, int64_t end) { data_rows_any(g, dy, wt, dx, begin, end); });
}

template <class T>
void conv_backward_weights_plain(const ConvShape& shape, const T* x, const T* dy, T* dw) {
  const Geometry g(shape);
  const ConvShape& s = g.s;
  if (s.weight_size() == 0) return;
  // Few long tasks: each reads all of x and dy.
  const int64_t rows = s.taps() * g.icg;
  const double row_work = static_cast<double>(s.batch * s.out_spatial() * s.out_channels) + 16;
  parallel_for(rows, std::max(grain_for(row_work), rows / 64),
               [&](int64_t begin, int64_t end) { weight_rows_any(g, x, dy, dw, begin, end); });
}

#define RUNNEL_CONV_PLAIN(T)                                                                      \
  template RUNNEL_API void conv_forward_plain<T>(const ConvShape&, const T*, const T*, T*);       \
  template RUNNEL_API void conv_backward_data_plain<T>(const ConvShape&, const T*, const T*, T*); \
  template RUNNEL_API void conv_backward_weights_plain<T>(const ConvShape&, const T*, const T*, T*);
RUNNEL_CONV_PLAIN(float)
RUNNEL_CONV_PLAIN(double)
RUNNEL_CONV_PLAIN(int32_t)
#undef RUNNEL_CONV_PLAIN

}  // namespace runnel::cpu
