#pragma once

// Convolution and pooling by their definitions, over up to three spatial dimensions, in double.
#include <functional>

#include "tests/support/tensors.h"

namespace runnel::test {

// Fewer spatial dimensions are led by dimensions of size 1.
struct Slide {
  int64_t in[3] = {1, 1, 1}, size[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  int64_t before[3] = {0, 0, 0}, out[3] = {1, 1, 1};
};

// padding: SAME, VALID, or before and after of every dimension.
inline Slide make_slide(const std::vector<int64_t>& in, const std::vector<int64_t>& size,
                        const std::vector<int64_t>& stride, const std::vector<int64_t>& dilation,
                        const std::string& padding, const std::vector<int64_t>& paddings) {
  Slide s;
  const size_t skip = 3 - in.size();
  for (size_t d = 0; d < in.size(); ++d) {
    const size_t at = d + skip;
    s.in[at] = in[d];
    s.size[at] = size[d];
    s.stride[at] = stride[d];
    s.dilation[at] = dilation[d];
    const int64_t extent = (size[d] - 1) * dilation[d] + 1;
    int64_t before = paddings.empty() ? 0 : paddings[2 * d];
    int64_t after = paddings.empty() ? 0 : paddings[2 * d + 1];
    if (padding == "SAME") {
      const int64_t out = (in[d] + stride[d] - 1) / stride[d];
      const int64_t total = std::max<int64_t>(0, (out - 1) * stride[d] + extent - in[d]);
      before = total / 2;
      after = total - before;
    }
    s.before[at] = before;
    int64_t out = 0;  // counted: every place where the whole window fits
    while (out * stride[d] + extent <= in[d] + before + after) ++out;
    s.out[at] = out;
  }
  return s;
}

// body(output cell, kernel cell, input cell) for every pair that is not in the padding.
inline void for_cells(const Slide& s, const std::function<void(int64_t, int64_t, int64_t)>& body) {
  int64_t o = 0;
  for (int64_t a = 0; a < s.out[0]; ++a) {
    for (int64_t b = 0; b < s.out[1]; ++b) {
      for (int64_t c = 0; c < s.out[2]; ++c, ++o) {
        int64_t k = 0;
        for (int64_t i = 0; i < s.size[0]; ++i) {
          for (int64_t j = 0; j < s.size[1]; ++j) {
            for (int64_t l = 0; l < s.size[2]; ++l, ++k) {
              const int64_t x = a * s.stride[0] + i * s.dilation[0] - s.before[0];
              const int64_t y = b * s.stride[1] + j * s.dilation[1] - s.before[1];
              const int64_t z = c * s.stride[2] + l * s.dilation[2] - s.before[2];
              if (x < 0 || y < 0 || z < 0 || x >= s.in[0] || y >= s.in[1] || z >= s.in[2]) continue;
              body(o, k, (x * s.in[1] + y) * s.in[2] + z);
            }
          }
        }
      }
    }
  }
}

inline int64_t cells(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// weights [kernel cells][in_channels / groups][out_channels]
inline std::vector<double> naive_conv(const Slide& s, int64_t batch, int64_t in_channels, int64_t out_channels,
                                      int64_t groups, const std::vector<double>& x, const std::vector<double>& w) {
  std::vector<double> y(static_cast<size_t>(batch * cells(s.out) * out_channels), 0);
  const int64_t per_in = in_channels / groups;
  const int64_t per_out = out_channels / groups;
  for (int64_t n = 0; n < batch; ++n) {
    for_cells(s, [&](int64_t o, int64_t k, int64_t i) {
      for (int64_t oc = 0; oc < out_channels; ++oc) {
        for (int64_t ic = 0; ic < per_in; ++ic) {
          y[static_cast<size_t>((n * cells(s.out) + o) * out_channels + oc)] +=
              x[static_cast<size_t>((n * cells(s.in) + i) * in_channels + oc / per_out * per_in + ic)] *
              w[static_cast<size_t>((k * per_in + ic) * out_channels + oc)];
        }
      }
    });
  }
  return y;
}

inline std::vector<double> naive_pool(const Slide& s, int64_t batch, int64_t channels, const std::vector<double>& x,
                                      bool average) {
  const auto n_out = static_cast<size_t>(batch * cells(s.out) * channels);
  std::vector<double> y(n_out, average ? 0 : -1e300), count(n_out, 0);
  for (int64_t n = 0; n < batch; ++n) {
    for_cells(s, [&](int64_t o, int64_t, int64_t i) {
      for (int64_t c = 0; c < channels; ++c) {
        const auto at = static_cast<size_t>((n * cells(s.out) + o) * channels + c);
        const double v = x[static_cast<size_t>((n * cells(s.in) + i) * channels + c)];
        y[at] = average ? y[at] + v : std::max(y[at], v);
        count[at] += 1;
      }
    });
  }
  if (average) {
    for (size_t i = 0; i < n_out; ++i) y[i] /= count[i];
  }
  return y;
}

// [batch, spatial..., channels] of the output.
inline Shape slide_output(const Slide& s, size_t dims, int64_t batch, int64_t channels) {
  std::vector<int64_t> out{batch};
  for (size_t d = 3 - dims; d < 3; ++d) out.push_back(s.out[d]);
  out.push_back(channels);
  return Shape(out);
}

}  // namespace runnel::test
