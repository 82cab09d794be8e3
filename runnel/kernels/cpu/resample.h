#pragma once

// Separable resampling of images [batch, height, width, channels]: every output row is a weighted sum of input rows,
// every output column one of input columns.
#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::cpu {

// Output i is the sum over k < taps of weights[i * taps + k] * input[start[i] + k]. Shorter sums are filled up with
// zero weights; start[i] + taps <= in always.
struct RUNNEL_API AxisWeights {
  int64_t in = 0;
  int64_t out = 0;
  int64_t taps = 0;
  std::vector<int32_t> start;
  std::vector<float> weights;
  bool sums_to_one = false;  // the weights of every output

  AxisWeights(int64_t in, int64_t out);
  // The weights of output i in order of i, for inputs first, first + 1, ...; what lies outside [0, in) must have been
  // dropped or moved inside. Ends with finish().
  void add(int64_t first, const double* w, int64_t n);
  void finish();

 private:
  struct Span {
    int64_t first, offset, count;
  };
  std::vector<Span> spans_;
  std::vector<double> values_;
};

// The rules of TensorFlow's resizing. half_pixel_centers is that of TensorFlow 2.
struct ResizeRule {
  bool align_corners = false;
  bool half_pixel_centers = true;
};
RUNNEL_API AxisWeights bilinear_weights(int64_t in, int64_t out, const ResizeRule& rule);
RUNNEL_API AxisWeights bicubic_weights(int64_t in, int64_t out, const ResizeRule& rule);
RUNNEL_API AxisWeights area_weights(int64_t in, int64_t out, const ResizeRule& rule);
// The input that each output takes.
RUNNEL_API std::vector<int32_t> nearest_sources(int64_t in, int64_t out, const ResizeRule& rule);
// Output i stands at (i + 0.5 - translation) / scale. Kernels: lanczos1, lanczos3, lanczos5, gaussian, box, triangle,
// keyscubic, mitchellcubic; antialias widens them where the image shrinks.
RUNNEL_API bool is_sampling_kernel(const std::string& name);
RUNNEL_API AxisWeights kernel_weights(int64_t in, int64_t out, double scale, double translation,
                                      const std::string& kernel, bool antialias);

// y [batch, rows.out, cols.out, channels] from x [batch, rows.in, cols.in, channels].
template <class T>
void resample(const T* x, int64_t batch, int64_t channels, const AxisWeights& rows, const AxisWeights& cols, float* y);

// The transpose: dx [batch, rows.in, cols.in, channels] from dy [batch, rows.out, cols.out, channels].
RUNNEL_API void resample_transposed(const float* dy, int64_t batch, int64_t channels, const AxisWeights& rows,
                                    const AxisWeights& cols, float* dx);

}  // namespace runnel::cpu
