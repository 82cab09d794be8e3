// Resampling against the formulas in double, pixel by pixel.
#include "runnel/kernels/cpu/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runnel/base/parallel.h"

namespace runnel::cpu {
namespace {

// The value at a position of one line, by a rule that knows neither the other axis nor any table.
using Line = std::function<double(const std::vector<double>& line, int64_t out, int64_t i)>;

double bilinear(const std::vector<double>& line, int64_t out, int64_t i) {
  const auto n = static_cast<int64_t>(line.size());
  const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(n) / static_cast<double>(out) - 0.5;
  const double low = std::floor(at);
  const auto pixel = [&](double k) {
    return line[static_cast<size_t>(std::min(std::max(k, 0.0), static_cast<double>(n - 1)))];
  };
  return pixel(low) + (pixel(low + 1) - pixel(low)) * (at - low);
}

double bicubic(const std::vector<double>& line, int64_t out, int64_t i) {
  const auto n = static_cast<double>(line.size());
  // Positions are float32, and the cubic is known at 1024 places between two pixels.
  const float exact = (static_cast<float>(i) + 0.5f) * (static_cast<float>(n) / static_cast<float>(out)) - 0.5f;
  const float below = std::floor(exact);
  const double at = static_cast<double>(below) + static_cast<double>(std::nearbyint((exact - below) * 1024)) / 1024;
  double sum = 0, weights = 0;
  for (double k = static_cast<double>(below) - 1; k <= static_cast<double>(below) + 2; ++k) {
    if (k < 0 || k > n - 1) continue;
    const double x = std::abs(at - k);
    const double w = x <= 1 ? 1.5 * x * x * x - 2.5 * x * x + 1 : -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2;
    sum += w * line[static_cast<size_t>(k)];
    weights += w;
  }
  return sum / weights;
}

double area(const std::vector<double>& line, int64_t out, int64_t i) {
  const double scale = static_cast<double>(line.size()) / static_cast<double>(out);
  const double from = static_cast<double>(i) * scale, to = from + scale;
  double sum = 0;
  for (size_t k = 0; k < line.size(); ++k) {
    const double share = std::min(to, static_cast<double>(k + 1)) - std::max(from, static_cast<double>(k));
    if (share > 0) sum += share * line[k];
  }
  return sum / scale;
}

double lanczos3_antialiased(const std::vector<double>& line, int64_t out, int64_t i) {
  const double step = static_cast<double>(line.size()) / static_cast<double>(out), wide = std::max(1.0, step);
  const double at = (static_cast<double>(i) + 0.5) * step;
  double sum = 0, weights = 0;
  for (size_t k = 0; k < line.size(); ++k) {
    const double x = std::abs((static_cast<double>(k) + 0.5 - at) / wide);
    const double p = std::acos(-1.0) * x;
    const double w = x >= 3 ? 0 : x < 1e-3 ? 1 : 3 * std::sin(p) * std::sin(p / 3) / (p * p);
    sum += w * line[k];
    weights += w;
  }
  return sum / weights;
}

struct Way {
  const char* name;
  Line line;
  std::function<AxisWeights(int64_t, int64_t)> weights;
};

std::vector<Way> ways() {
  return {{"bilinear", bilinear, [](int64_t in, int64_t out) { return bilinear_weights(in, out, {}); }},
          {"bicubic", bicubic, [](int64_t in, int64_t out) { return bicubic_weights(in, out, {}); }},
          {"area", area,
           [](int64_t in, int64_t out) {
             return area_weights(in, out, {false, false});
           }},
          {"lanczos3", lanczos3_antialiased, [](int64_t in, int64_t out) {
             return kernel_weights(in, out, static_cast<double>(out) / static_cast<double>(in), 0, "lanczos3", true);
           }}};
}

template <class T>
std::vector<T> noise(int64_t n) {
  std::vector<T> v;
  uint32_t seed = 7;
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    v.push_back(static_cast<T>(seed >> 25));  // 0 to 127
  }
  return v;
}

template <class T>
void check(const Way& way, int64_t batch, int64_t h, int64_t w, int64_t c, int64_t out_h, int64_t out_w) {
  SCOPED_TRACE(std::string(way.name) + " " + std::to_string(h) + "x" + std::to_string(w) + "x" + std::to_string(c) +
               " to " + std::to_string(out_h) + "x" + std::to_string(out_w));
  const auto x = noise<T>(batch * h * w * c);
  std::vector<float> y(static_cast<size_t>(batch * out_h * out_w * c), -1);
  resample(x.data(), batch, c, way.weights(h, out_h), way.weights(w, out_w), y.data());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t k = 0; k < c; ++k) {
      // Rows first here, columns first there.
      std::vector<std::vector<double>> narrow(static_cast<size_t>(h));
      for (int64_t r = 0; r < h; ++r) {
        std::vector<double> line;
        for (int64_t s = 0; s < w; ++s)
          line.push_back(static_cast<double>(x[static_cast<size_t>(((b * h + r) * w + s) * c + k)]));
        for (int64_t j = 0; j < out_w; ++j) narrow[static_cast<size_t>(r)].push_back(way.line(line, out_w, j));
      }
      for (int64_t j = 0; j < out_w; ++j) {
        std::vector<double> line;
        for (int64_t r = 0; r < h; ++r) line.push_back(narrow[static_cast<size_t>(r)][static_cast<size_t>(j)]);
        for (int64_t i = 0; i < out_h; ++i) {
          ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(((b * out_h + i) * out_w + j) * c + k)]),
                      way.line(line, out_h, i), 1e-3)
              << i << "," << j << "," << k;
        }
      }
    }
  }
}

TEST(Resample, AsTheFormulaSays) {
  for (const Way& way : ways()) {
    for (int64_t c : {1, 2, 3, 4, 5}) {
      check<uint8_t>(way, 2, 13, 17, c, 9, 30);
      check<uint8_t>(way, 1, 9, 8, c, 20, 5);
    }
    check<uint8_t>(way, 1, 1, 1, 3, 4, 3);
    check<uint8_t>(way, 1, 2, 3, 3, 1, 1);
    check<float>(way, 1, 75, 100, 3, 51, 52);
    check<int64_t>(way, 1, 5, 6, 3, 7, 4);
    check<double>(way, 1, 100, 3, 1, 7, 9);
  }
}

TEST(Resample, SameBitsWithAnyThreads) {
  const auto x = noise<uint8_t>(3 * 120 * 90 * 3);
  std::vector<float> one(3 * 64 * 70 * 3), two(one.size());
  const AxisWeights rows = bilinear_weights(120, 64, {}), cols = bilinear_weights(90, 70, {});
  const int before = num_threads();
  set_num_threads(1);
  resample(x.data(), 3, 3, rows, cols, one.data());
  set_num_threads(2);
  resample(x.data(), 3, 3, rows, cols, two.data());
  set_num_threads(before);
  EXPECT_EQ(one, two);
}

TEST(Resample, TransposedIsTheTranspose) {
  const AxisWeights rows = bicubic_weights(7, 5, {}), cols = bilinear_weights(6, 11, {});
  const auto x = noise<float>(2 * 7 * 6 * 3), dy = noise<float>(2 * 5 * 11 * 3);
  std::vector<float> y(dy.size()), dx(x.size());
  resample(x.data(), 2, 3, rows, cols, y.data());
  resample_transposed(dy.data(), 2, 3, rows, cols, dx.data());
  double a = 0, b = 0;
  for (size_t i = 0; i < y.size(); ++i) a += static_cast<double>(y[i]) * static_cast<double>(dy[i]);
  for (size_t i = 0; i < x.size(); ++i) b += static_cast<double>(x[i]) * static_cast<double>(dx[i]);
  EXPECT_NEAR(a, b, 1e-5 * std::abs(a));
}

// More pixels than float32 has whole numbers: the last one is rounded up.
TEST(Resample, KernelsEndAtTheLastPixel) {
  constexpr int64_t kPixels = (1 << 24) + 4;
  const AxisWeights axis = kernel_weights(kPixels, 1, 1, 0.5 - static_cast<double>(kPixels), "triangle", false);
  EXPECT_EQ(axis.start[0] + axis.taps, kPixels);
  EXPECT_EQ(axis.weights.back(), 1.0f);
}

TEST(Nearest, PositionsAreFloat32) {
  for (int64_t in = 1; in < 70; ++in) {
    for (int64_t out = 1; out < 70; ++out) {
      const auto from = nearest_sources(in, out, {});
      for (int64_t i = 0; i < out; ++i) {
        // floor((i + 1/2) * in / out); where that is a whole number, rounding decides which of two.
        const int64_t k = (2 * i + 1) * in / (2 * out);
        const bool whole = (2 * i + 1) * in % (2 * out) == 0;
        const int32_t got = from[static_cast<size_t>(i)];
        ASSERT_TRUE(got == k || (whole && got == k - 1)) << in << " " << out << " " << i << " " << got;
      }
    }
  }
}

}  // namespace
}  // namespace runnel::cpu
