#pragma once

// Internal to conv.cpp and conv_weights.cpp: a kernel of one tap that moves by more than one meets only some pixels of
// the input. With these alone it is a convolution that moves by one. (oneDNN does the same inside, but in the version
// of Debian 12 its gradients write beyond their scratch memory where channels fill no vector.)
#include <algorithm>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/conv.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {

inline bool conv_skips_pixels(const ConvShape& s) {
  bool skips = false;
  for (int d = 0; d < s.dims; ++d) {
    if (s.kernel[d] != 1 || s.pad_before[d] != 0 || (s.out(d) - 1) * s.stride[d] >= s.in[d]) return false;
    skips = skips || s.stride[d] != 1;
  }
  return skips;
}

// The convolution of the pixels that are met.
inline ConvShape met_shape(const ConvShape& s) {
  ConvShape met = s;
  for (int d = 0; d < s.dims; ++d) {
    met.in[d] = s.out(d);
    met.stride[d] = 1;
    met.pad_after[d] = 0;
  }
  return met;
}

// visit(number among the pixels that are met, number among all), for those of one image.
template <class Visit>
void for_each_met_pixel(const ConvShape& s, Visit visit) {
  const int64_t slices = s.dims == 3 ? s.out(0) : 1;
  const int h = s.dims - 2, w = s.dims - 1;
  int64_t met = 0;
  for (int64_t z = 0; z < slices; ++z) {
    const int64_t slice = s.dims == 3 ? z * s.stride[0] * s.in[1] : 0;
    for (int64_t y = 0; y < s.out(h); ++y) {
      const int64_t row = (slice + y * s.stride[h]) * s.in[w];
      for (int64_t x = 0; x < s.out(w); ++x) visit(met++, row + x * s.stride[w]);
    }
  }
}

// met <- x
template <class T>
void take_met_pixels(const ConvShape& s, const T* x, T* met) {
  const int64_t channels = s.in_channels, image = s.spatial(s.in) * channels, met_image = s.out_spatial() * channels;
  parallel_for(s.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      for_each_met_pixel(s, [&](int64_t to, int64_t from) {
        std::copy_n(x + b * image + from * channels, channels, met + b * met_image + to * channels);
      });
    }
  });
}

// x <- met, and zeros where no pixel was met
template <class T>
void put_met_pixels(const ConvShape& s, const T* met, T* x) {
  const int64_t channels = s.in_channels, image = s.spatial(s.in) * channels, met_image = s.out_spatial() * channels;
  parallel_for(s.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      std::fill_n(x + b * image, image, T{});
      for_each_met_pixel(s, [&](int64_t from, int64_t to) {
        std::copy_n(met + b * met_image + from * channels, channels, x + b * image + to * channels);
      });
    }
  });
}

// convolve(met_shape(s), pixels) with the pixels of x that are met.
template <class T, class Convolve>
auto with_met_pixels(const ConvShape& s, const T* x, const Convolve& convolve) {
  const ConvShape met = met_shape(s);
  ScratchFrame frame;
  T* pixels = frame.get<T>(met.in_size());
  take_met_pixels(s, x, pixels);
  return convolve(met, static_cast<const T*>(pixels));
}

// The same for what gives the pixels. False, and nothing in x, where convolve returns that.
template <class T, class Convolve>
bool fill_met_pixels(const ConvShape& s, T* x, const Convolve& convolve) {
  const ConvShape met = met_shape(s);
  ScratchFrame frame;
  T* pixels = frame.get<T>(met.in_size());
  if (!convolve(met, pixels)) return false;
  put_met_pixels(s, pixels, x);
  return true;
}

}  // namespace runnel::cpu
