#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/resample.h"

namespace runnel::cpu {
namespace {

double scale_of(int64_t in, int64_t out, const ResizeRule& rule) {
  return rule.align_corners && out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1)
                                       : static_cast<double>(in) / static_cast<double>(out);
}

double position(int64_t i, double scale, const ResizeRule& rule) {
  const auto x = static_cast<double>(i);
  return rule.half_pixel_centers ? (x + 0.5) * scale - 0.5 : x * scale;
}

// The same in float32, as TensorFlow computes it: it decides which of two places is the nearest.
float narrow_position(int64_t i, float scale, const ResizeRule& rule) {
  const auto x = static_cast<float>(i);
  return rule.half_pixel_centers ? (x + 0.5f) * scale - 0.5f : x * scale;
}

// Keys' cubic with the parameter a, at distance x.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

struct SamplingKernel {
  const char* name;
  double radius;
  double (*at)(double x);  // x >= 0
};

template <int R>
double lanczos(double x) {
  if (x > R) return 0;
  if (x <= 1e-3) return 1;
  const double p = std::numbers::pi * x;
  return R * std::sin(p) * std::sin(p / R) / (p * p);
}

constexpr SamplingKernel kKernels[] = {
    {"lanczos1", 1, lanczos<1>},
    {"lanczos3", 3, lanczos<3>},
    {"lanczos5", 5, lanczos<5>},
    {"gaussian", 1.5, [](double x) { return x >= 1.5 ? 0.0 : std::exp(-x * x / (2 * 0.5 * 0.5)); }},
    {"box", 1, [](double x) { return x < 0.5    ? 1.0
                                     : x == 0.5 ? 0.5
                                                : 0.0; }},
    {"triangle", 1, [](double x) { return x < 1 ? 1 - x : 0.0; }},
    {"keyscubic", 2, [](double x) { return cubic(x, -0.5); }},
    {"mitchellcubic", 2,
     [](double x) {
       if (x >= 2) return 0.0;
       if (x >= 1) return ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9;
       return (7.0 / 6 * x - 2) * x * x + 8.0 / 9;
     }},
};

const SamplingKernel* find_kernel(const std::string& name) {
  for (const SamplingKernel& k : kKernels) {
    if (name == k.name) return &k;
  }
  return nullptr;
}

// Divided by their sum, unless that is next to nothing.
void normalize(std::vector<double>& w) {
  double sum = 0;
  for (double v : w) sum += v;
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) return;
  for (double& v : w) v /= sum;
}

}  // namespace

AxisWeights::AxisWeights(int64_t in_size, int64_t out_size) : in(in_size), out(out_size) {
  spans_.reserve(static_cast<size_t>(out));
}

void AxisWeights::add(int64_t first, const double* w, int64_t n) {
  spans_.push_back({first, static_cast<int64_t>(values_.size()), n});
  values_.insert(values_.end(), w, w + n);
}

void AxisWeights::finish() {
  taps = 1;
  for (const Span& s : spans_) taps = std::max(taps, s.count);
  start.resize(static_cast<size_t>(out));
  weights.assign(static_cast<size_t>(out * taps), 0.0f);
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Span& s = spans_[i];
    const int64_t at = std::clamp<int64_t>(s.first, 0, in - taps);
    start[i] = static_cast<int32_t>(at);
    for (int64_t k = 0; k < s.count; ++k) {
      weights[i * static_cast<size_t>(taps) + static_cast<size_t>(s.first - at + k)] =
          static_cast<float>(values_[static_cast<size_t>(s.offset + k)]);
    }
  }
  spans_ = {};
  values_ = {};
}

AxisWeights bilinear_weights(int64_t in, int64_t out, const ResizeRule& rule) {
  AxisWeights axis(in, out);
  const double scale = scale_of(in, out, rule);
  // The commonest rule: written down at once, without spans.
  axis.taps = std::min<int64_t>(in, 2);
  axis.sums_to_one = true;
  axis.start.resize(static_cast<size_t>(out));
  axis.weights.assign(static_cast<size_t>(out * axis.taps), 1.0f);
  for (int64_t i = 0; in > 1 && i < out; ++i) {
    // Beyond the outermost centres the image goes on as it is there.
    const double at = std::clamp(position(i, scale, rule), 0.0, static_cast<double>(in - 1));
    const int64_t first = std::min(static_cast<int64_t>(at), in - 2);
    const double share = at - static_cast<double>(first);
    axis.start[static_cast<size_t>(i)] = static_cast<int32_t>(first);
    axis.weights[static_cast<size_t>(2 * i)] = static_cast<float>(1 - share);
    axis.weights[static_cast<size_t>(2 * i + 1)] = static_cast<float>(share);
  }
  return axis;
}

AxisWeights bicubic_weights(int64_t in, int64_t out, const ResizeRule& rule) {
  AxisWeights axis(in, out);
  const auto scale = static_cast<float>(scale_of(in, out, rule));
  const double a = rule.half_pixel_centers ? -0.5 : -0.75;
  std::vector<double> w;
  for (int64_t i = 0; i < out; ++i) {
    const float exact = narrow_position(i, scale, rule);
    const auto below = static_cast<int64_t>(std::floor(exact));
    // TensorFlow knows the cubic at 1024 places between two pixels, and takes the nearest.
    const double at = static_cast<double>(below) +
                      static_cast<double>(std::nearbyint((exact - static_cast<float>(below)) * 1024)) / 1024;
    const int64_t first = std::clamp<int64_t>(below - 1, 0, in - 1), last = std::clamp<int64_t>(below + 2, 0, in - 1);
    w.assign(static_cast<size_t>(last - first + 1), 0.0);
    for (int64_t k = below - 1; k <= below + 2; ++k) {
      const int64_t inside = std::clamp<int64_t>(k, 0, in - 1);
      // Pixels beyond the border count as the border's or, with half-pixel centres, not at all.
      if (inside != k && rule.half_pixel_centers) continue;
      w[static_cast<size_t>(inside - first)] += cubic(at - static_cast<double>(k), a);
    }
    if (rule.half_pixel_centers) normalize(w);
    axis.add(first, w.data(), last - first + 1);
  }
  axis.finish();
  return axis;
}

AxisWeights area_weights(int64_t in, int64_t out, const ResizeRule& rule) {
  AxisWeights axis(in, out);
  const double scale = scale_of(in, out, rule);
  std::vector<double> w;
  for (int64_t i = 0; i < out; ++i) {
    const double from = static_cast<double>(i) * scale, to = static_cast<double>(i + 1) * scale;
    const auto begin = static_cast<int64_t>(std::floor(from)), end = static_cast<int64_t>(std::ceil(to));
    const int64_t first = std::clamp<int64_t>(begin, 0, in - 1), last = std::clamp<int64_t>(end - 1, first, in - 1);
    w.assign(static_cast<size_t>(last - first + 1), 0.0);
    if (scale == 0) w[0] = 1;  // one pixel for all: it has no area here
    for (int64_t k = begin; k < end; ++k) {
      const double share = std::min(to, static_cast<double>(k + 1)) - std::max(from, static_cast<double>(k));
      w[static_cast<size_t>(std::clamp<int64_t>(k, first, last) - first)] += share / scale;
    }
    axis.add(first, w.data(), last - first + 1);
  }
  axis.finish();
  return axis;
}

std::vector<int32_t> nearest_sources(int64_t in, int64_t out, const ResizeRule& rule) {
  std::vector<int32_t> from(static_cast<size_t>(out));
  const auto scale = static_cast<float>(scale_of(in, out, rule));  // positions are float32, as TensorFlow's
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + (rule.half_pixel_centers ? 0.5f : 0.0f)) * scale;
    const auto pixel = static_cast<int64_t>(rule.align_corners ? std::round(at) : std::floor(at));
    from[static_cast<size_t>(i)] = static_cast<int32_t>(std::min(pixel, in - 1));
  }
  return from;
}

bool is_sampling_kernel(const std::string& name) { return find_kernel(name) != nullptr; }

AxisWeights kernel_weights(int64_t in, int64_t out, double scale, double translation, const std::string& kernel,
                           bool antialias) {
  const SamplingKernel* k = find_kernel(kernel);
  if (!k) throw invalid_argument("no sampling kernel is called '{}'", kernel);
  if (!(scale > 0)) throw invalid_argument("scale must be positive, got {}", scale);
  AxisWeights axis(in, out);
  // Positions are float32, as TensorFlow's: which pixels a kernel just reaches depends on their last bit.
  const auto step = static_cast<float>(1 / scale);
  const float moved = -step * static_cast<float>(translation);
  const float wide = antialias ? std::max(step, 1.0f) : 1.0f;
  const float reach = static_cast<float>(k->radius) * wide;
  std::vector<double> w;
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * step + moved;
    if (!(at >= 0 && at <= static_cast<float>(in))) {  // outside the image: zero
      axis.add(0, nullptr, 0);
      continue;
    }
    const auto pixel = [&](float where) {  // the last one may have been rounded up to float32: cut off again
      return std::min(static_cast<int64_t>(std::clamp(where, 0.0f, static_cast<float>(in - 1))), in - 1);
    };
    const int64_t first = pixel(std::ceil(at - reach - 0.5f)), last = pixel(std::floor(at + reach - 0.5f));
    w.clear();
    for (int64_t s = first; s <= last; ++s) {
      w.push_back(k->at(std::abs(static_cast<double>(static_cast<float>(s) + 0.5f - at) / static_cast<double>(wide))));
    }
    normalize(w);
    axis.add(first, w.data(), static_cast<int64_t>(w.size()));
  }
  axis.finish();
  return axis;
}

}  // namespace runnel::cpu
