#include "runnel/kernels/cpu/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "tests/support/random_vector.h"
#include "tests/support/resident.h"

namespace runnel::cpu {
namespace {

using test::random_vector;

// Every (output, weight, input) triple of the convolution, straight from the definition.
template <class F>
void each_product(const ConvShape& s, F&& f) {
  const int64_t icg = s.in_channels / s.groups, ocg = s.out_channels / s.groups;
  const bool deep = s.dims == 3;
  auto at = [&](const ConvShape::Dims& a, int d, int64_t missing) {  // d: 0 depth, 1 height, 2 width
    return deep ? a[d] : d == 0 ? missing : a[d - 1];
  };
  auto out = [&](int d) { return deep ? s.out(d) : d == 0 ? 1 : s.out(d - 1); };
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t a = 0; a < out(0); ++a)
      for (int64_t b = 0; b < out(1); ++b)
        for (int64_t c = 0; c < out(2); ++c)
          for (int64_t p = 0; p < at(s.kernel, 0, 1); ++p)
            for (int64_t q = 0; q < at(s.kernel, 1, 1); ++q)
              for (int64_t r = 0; r < at(s.kernel, 2, 1); ++r) {
                const int64_t i = a * at(s.stride, 0, 1) + p * at(s.dilation, 0, 1) - at(s.pad_before, 0, 0);
                const int64_t j = b * at(s.stride, 1, 1) + q * at(s.dilation, 1, 1) - at(s.pad_before, 1, 0);
                const int64_t k = c * at(s.stride, 2, 1) + r * at(s.dilation, 2, 1) - at(s.pad_before, 2, 0);
                if (i < 0 || j < 0 || k < 0 || i >= at(s.in, 0, 1) || j >= at(s.in, 1, 1) || k >= at(s.in, 2, 1))
                  continue;
                const int64_t x0 =
                    (((n * at(s.in, 0, 1) + i) * at(s.in, 1, 1) + j) * at(s.in, 2, 1) + k) * s.in_channels;
                const int64_t y0 = (((n * out(0) + a) * out(1) + b) * out(2) + c) * s.out_channels;
                const int64_t w0 = ((p * at(s.kernel, 1, 1) + q) * at(s.kernel, 2, 1) + r) * icg * s.out_channels;
                for (int64_t o = 0; o < s.out_channels; ++o)
                  for (int64_t e = 0; e < icg; ++e) f(y0 + o, w0 + e * s.out_channels + o, x0 + o / ocg * icg + e);
              }
}

template <class T>
void expect_near(const std::vector<double>& want, const std::vector<double>& size, const std::vector<T>& got,
                 const char* what) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const double eps = std::is_same_v<T, double> ? 1e-14 : std::is_same_v<T, int32_t> ? 0 : 2e-6;
    const double rounding = std::is_same_v<T, BFloat16> ? std::abs(want[i]) / 250 : 0;
    ASSERT_NEAR(want[i], static_cast<double>(got[i]), eps * (size[i] + 1) + rounding) << what << " at " << i;
  }
}

template <class T>
std::vector<T> conv_values(int64_t n, unsigned seed) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const std::vector<float> floats = random_vector<float>(n, seed);
    std::vector<T> values;
    for (const float x : floats) values.emplace_back(x);
    return values;
  } else {
    return random_vector<T>(n, seed);
  }
}

// The passes return whether they ran.
template <class T, class Forward, class Data, class Weights>
void check(const ConvShape& s, Forward forward, Data data, Weights weights) {
  SCOPED_TRACE(testing::Message() << "batch " << s.batch << " in " << s.in[0] << "x" << s.in[1] << "x" << s.in[2] << "x"
                                  << s.in_channels << " -> " << s.out_channels << " kernel " << s.kernel[0] << "x"
                                  << s.kernel[1] << "x" << s.kernel[2] << " stride " << s.stride[0] << ","
                                  << s.stride[1] << " dilation " << s.dilation[0] << "," << s.dilation[1] << " pad "
                                  << s.pad_before[0] << "," << s.pad_after[0] << " groups " << s.groups << " dims "
                                  << s.dims);
  const auto x = conv_values<T>(s.in_size(), 1), w = conv_values<T>(s.weight_size(), 2),
             dy = conv_values<T>(s.out_size(), 3);
  std::vector<double> y_want(dy.size()), dx_want(x.size()), dw_want(w.size());
  std::vector<double> y_abs(dy.size()), dx_abs(x.size()), dw_abs(w.size());  // sums of magnitudes bound the error
  each_product(s, [&](int64_t o, int64_t e, int64_t i) {
    const double xi = static_cast<double>(x[i]), we = static_cast<double>(w[e]), yo = static_cast<double>(dy[o]);
    y_want[o] += xi * we, dx_want[i] += we * yo, dw_want[e] += xi * yo;
    y_abs[o] += std::abs(xi * we), dx_abs[i] += std::abs(we * yo), dw_abs[e] += std::abs(xi * yo);
  });
  std::vector<T> y[2], dx[2], dw[2];
  bool ran[3];
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    const int t = threads - 1;
    y[t].assign(dy.size(), T(77)), dx[t].assign(x.size(), T(77)), dw[t].assign(w.size(), T(77));
    ran[0] = forward(s, x.data(), w.data(), y[t].data());
    ran[1] = data(s, dy.data(), w.data(), dx[t].data());
    ran[2] = weights(s, x.data(), dy.data(), dw[t].data());
  }
  if (ran[0]) expect_near(y_want, y_abs, y[0], "forward");
  if (ran[1]) expect_near(dx_want, dx_abs, dx[0], "backward data");
  if (ran[2]) expect_near(dw_want, dw_abs, dw[0], "backward weights");
  auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
    return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
  };
  ASSERT_TRUE(same(y[0], y[1]) && same(dx[0], dx[1]) && same(dw[0], dw[1])) << "bits differ with two threads";
}

template <auto f>
constexpr auto always = [](auto&&... a) {
  f(a...);
  return true;
};
void conv_forward_f32(const ConvShape& s, const float* x, const float* w, float* y) { conv_forward(s, x, w, y); }
void check_f32(const ConvShape& s) {
  check<float>(s, always<conv_forward_f32>, always<conv_backward_data>, always<conv_backward_weights>);
}
template <class T>
void check_plain(const ConvShape& s) {
  check<T>(s, always<conv_forward_plain<T>>, always<conv_backward_data_plain<T>>,
           always<conv_backward_weights_plain<T>>);
}
// How many of the passes ran in bfloat16.
int check_bf16(const ConvShape& s) {
  if (s.in_size() == 0 || s.out_size() == 0 || s.weight_size() == 0) return 0;
  int passes = 0;
  const auto counted = [&](auto pass) {
    return [&passes, pass](auto&&... a) {
      const bool ran = pass(a...);
      passes += ran ? 1 : 0;
      return ran;
    };
  };
  check<BFloat16>(s, counted(conv_forward_bf16), counted(conv_backward_data_bf16), counted(conv_backward_weights_bf16));
  return passes / 2;  // with one thread and with two
}

ConvShape shape2(int64_t batch, int64_t h, int64_t w, int64_t in, int64_t out, int64_t k, int64_t stride = 1,
                 int64_t dilation = 1, int64_t pad = 0, int64_t groups = 1) {
  ConvShape s;
  s.batch = batch, s.in_channels = in, s.out_channels = out, s.groups = groups;
  s.in = {h, w, 0}, s.kernel = {k, k, 1};
  s.stride = {stride, stride, 1}, s.dilation = {dilation, dilation, 1}, s.pad_before = s.pad_after = {pad, pad, 0};
  return s;
}

std::vector<ConvShape> shapes() {
  std::vector<ConvShape> v = {
      shape2(2, 8, 8, 3, 5, 3),
      shape2(1, 1, 1, 1, 1, 1),
      shape2(3, 7, 9, 4, 6, 1),            // 1x1: a matrix product
      shape2(2, 9, 9, 8, 16, 1, 2),        // 1x1 with stride
      shape2(2, 9, 9, 8, 16, 1, 1, 1, 1),  // 1x1 with padding
      shape2(5, 12, 12, 16, 32, 3, 1, 1, 1),
      shape2(5, 12, 11, 17, 19, 3, 1, 1, 1),  // channels that fill no vector
      shape2(7, 14, 14, 32, 64, 5, 1, 1, 2),  // runs in several pieces
      shape2(50, 28, 28, 1, 32, 5, 1, 1, 2),
      shape2(1, 40, 40, 16, 32, 3, 1, 1, 1),  // one image in pieces of rows
      shape2(3, 40, 33, 20, 24, 5, 1, 1, 2),
      shape2(1, 41, 30, 3, 20, 3, 2, 1, 1),
      shape2(2, 33, 33, 3, 32, 3),
      shape2(3, 20, 23, 3, 64, 3, 1, 1, 1),  // few channels into whole vectors
      shape2(2, 25, 19, 4, 32, 7, 2, 1, 3),
      shape2(2, 5, 300, 2, 96, 3, 1, 1, 1),
      shape2(1, 60, 60, 1, 32, 5, 1, 1, 2),
      shape2(2, 3, 2, 2, 32, 3, 1, 1, 4),  // columns and rows that see no input
      shape2(2, 10, 10, 5, 7, 3, 2),
      shape2(2, 11, 10, 5, 7, 2, 3),  // stride > kernel
      shape2(2, 11, 11, 32, 32, 1, 3),
      shape2(2, 12, 10, 6, 9, 1, 2),  // one tap that skips pixels, channels that fill no vector
      shape2(8, 20, 12, 5, 1, 1, 2),
      shape2(2, 9, 8, 20, 8, 1, 2),
      shape2(4, 14, 14, 64, 128, 1, 2),
      shape2(2, 11, 11, 12, 8, 1, 2, 1, 0, 4),
      shape2(2, 1, 1, 16, 16, 3, 1, 1, 1),  // taps that meet only padding
      shape2(4, 2, 2, 32, 32, 5, 1, 1, 2),
      shape2(4, 64, 1, 32, 32, 3, 1, 1, 1),
      shape2(2, 15, 15, 4, 8, 3, 1, 2, 2),  // dilation
      shape2(2, 15, 15, 16, 16, 3, 1, 3, 3),
      shape2(2, 20, 20, 20, 20, 3, 2, 2, 1),
      shape2(2, 6, 6, 3, 4, 3, 1, 1, 4),  // more padding than kernel
      shape2(2, 6, 6, 16, 16, 3, 1, 1, 3),
      shape2(4, 3, 3, 16, 32, 3),              // the kernel covers the image
      shape2(2, 2, 2, 16, 32, 3, 1, 1, 1),     // the kernel is larger than the image
      shape2(3, 10, 10, 8, 8, 3, 1, 1, 1, 8),  // depthwise
      shape2(3, 10, 10, 32, 32, 3, 1, 1, 1, 32),
      shape2(3, 10, 10, 33, 33, 5, 2, 1, 2, 33),
      shape2(3, 10, 10, 8, 24, 3, 1, 1, 1, 8),  // depthwise with a multiplier
      shape2(3, 10, 10, 12, 8, 3, 1, 1, 1, 4),  // groups
      shape2(3, 10, 10, 32, 64, 3, 2, 1, 1, 2),
      shape2(3, 10, 10, 6, 6, 1, 1, 1, 0, 2),
      shape2(0, 8, 8, 3, 5, 3),  // empty batch
      shape2(2, 2, 8, 3, 5, 3),  // empty output
      shape2(2, 8, 8, 0, 5, 3),
      shape2(2, 8, 8, 3, 0, 3),
      shape2(60, 5, 5, 64, 64, 3, 1, 1, 1),
  };
  ConvShape s = shape2(2, 9, 12, 6, 10, 3);
  s.pad_before = {1, 0, 0}, s.pad_after = {0, 2, 0};  // uneven padding, as SAME gives
  v.push_back(s);
  s = shape2(3, 28, 28, 16, 16, 4, 1);
  s.pad_before = {1, 1, 0}, s.pad_after = {2, 2, 0};
  v.push_back(s);
  s = shape2(2, 9, 12, 6, 10, 3);
  s.kernel = {1, 4, 1}, s.stride = {2, 1, 1}, s.dilation = {1, 2, 1}, s.pad_before = {0, 3, 0};
  v.push_back(s);
  s = shape2(5, 17, 12, 3, 32, 3);
  s.kernel = {3, 4, 1}, s.stride = {1, 2, 1}, s.dilation = {2, 1, 1}, s.pad_before = {2, 1, 0}, s.pad_after = {0, 3, 0};
  v.push_back(s);
  s = shape2(20, 1, 40, 16, 16, 1);  // one dimension, as conv1d calls it
  s.kernel = {1, 5, 1}, s.pad_before = s.pad_after = {0, 2, 0};
  v.push_back(s);
  for (int64_t groups : {1, 2}) {
    s = ConvShape{};
    s.dims = 3, s.batch = 2, s.in_channels = 4, s.out_channels = 6, s.groups = groups;
    s.in = {5, 6, 7}, s.kernel = {2, 3, 3}, s.pad_before = {1, 1, 1}, s.pad_after = {0, 1, 1};
    v.push_back(s);
    s.stride = {1, 2, 2};
    v.push_back(s);
    s.kernel = {1, 1, 1}, s.pad_before = s.pad_after = {0, 0, 0}, s.stride = {2, 1, 2};
    v.push_back(s);
    s.kernel = {2, 3, 3}, s.pad_before = {1, 1, 1}, s.pad_after = {0, 1, 1};
    s.stride = {1, 1, 1}, s.in_channels = s.out_channels = 16, s.in = {12, 12, 12}, s.batch = 1;
    s.dilation = {2, 1, 1};
    v.push_back(s);
  }
  return v;
}

TEST(Conv, Float32MatchesNaive) {
  for (const ConvShape& s : shapes()) check_f32(s);
}

TEST(Conv, Bfloat16MatchesNaive) {
  int passes = 0;
  for (const ConvShape& s : shapes()) passes += check_bf16(s);
  if (has_avx512_bf16()) {
    EXPECT_GT(passes, 60);
  } else {
    EXPECT_EQ(passes, 0);
  }
}

TEST(Conv, PlainMatchesNaive) {
  constexpr int64_t kMostProducts = test::kSanitized ? 4'000'000 : INT64_MAX;  // instrumented loops are slow
  for (const ConvShape& s : shapes()) {
    if (s.batch * s.out_spatial() * s.weight_size() > kMostProducts) continue;
    check_plain<double>(s);
    check_plain<float>(s);
    check_plain<int32_t>(s);
  }
}

TEST(Conv, RandomShapes) {
  std::mt19937 gen(5);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(gen); };
  for (int i = 0; i < 150; ++i) {
    ConvShape s;
    s.dims = pick(0, 4) == 0 ? 3 : 2;
    s.batch = pick(1, 9);
    s.groups = pick(0, 3) == 0 ? pick(1, 4) : 1;
    s.in_channels = s.groups * pick(1, 20), s.out_channels = s.groups * pick(1, 20);
    for (int d = 0; d < s.dims; ++d) {
      s.in[d] = pick(1, s.dims == 3 ? 6 : 14), s.kernel[d] = pick(1, 4), s.stride[d] = pick(1, 3);
      s.dilation[d] = pick(1, 2), s.pad_before[d] = pick(0, 3), s.pad_after[d] = pick(0, 3);
    }
    check_f32(s);
    check_bf16(s);
  }
}

TEST(Conv, BiasAndRelu) {
  for (const ConvShape& s : {shape2(3, 9, 9, 5, 18, 3, 1, 1, 1), shape2(3, 6, 6, 7, 9, 1),
                             shape2(2, 6, 6, 3, 4, 3, 1, 1, 4), shape2(2, 4, 4, 0, 6, 3), shape2(2, 8, 8, 16, 32, 3)}) {
    const auto x = random_vector<float>(s.in_size(), 1), w = random_vector<float>(s.weight_size(), 2),
               b = random_vector<float>(s.out_channels, 3);
    std::vector<float> plain(s.out_size()), out(s.out_size());
    conv_forward(s, x.data(), w.data(), plain.data());
    for (int mode = 1; mode < 4; ++mode) {
      conv_forward(s, x.data(), w.data(), out.data(), {mode & 1 ? b.data() : nullptr, (mode & 2) != 0});
      for (size_t i = 0; i < out.size(); ++i) {
        float want = plain[i] + (mode & 1 ? b[i % s.out_channels] : 0.0f);
        if (mode & 2) want = std::max(want, 0.0f);
        ASSERT_NEAR(want, out[i], 2e-5) << "mode " << mode << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace runnel::cpu
