#include "runnel/kernels/cpu/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runnel/base/parallel.h"

namespace runnel::cpu {
namespace {

// Few distinct values: ties are common, so the first maximum matters.
template <class T>
std::vector<T> vector_with_ties(int64_t n, unsigned seed) {
  std::mt19937 gen(seed);
  std::uniform_int_distribution<int> value(0, 6);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(std::is_signed_v<T> ? value(gen) - 3 : value(gen));
  return v;
}

// The cells of every window in row-major order: f(first output element, {first input elements}).
template <class F>
void each_window(const PoolShape& s, F&& f) {
  const int skip = 3 - s.dims;
  auto at = [&](const PoolShape::Dims& a, int d, int64_t missing) { return d < skip ? missing : a[d - skip]; };
  auto out = [&](int d) { return d < skip ? int64_t{1} : s.out(d - skip); };
  int64_t o = 0;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t a = 0; a < out(0); ++a)
      for (int64_t b = 0; b < out(1); ++b)
        for (int64_t c = 0; c < out(2); ++c, ++o) {
          std::vector<int64_t> cells;
          for (int64_t p = 0; p < at(s.kernel, 0, 1); ++p)
            for (int64_t q = 0; q < at(s.kernel, 1, 1); ++q)
              for (int64_t r = 0; r < at(s.kernel, 2, 1); ++r) {
                const int64_t i = a * at(s.stride, 0, 1) + p - at(s.pad_before, 0, 0);
                const int64_t j = b * at(s.stride, 1, 1) + q - at(s.pad_before, 1, 0);
                const int64_t k = c * at(s.stride, 2, 1) + r - at(s.pad_before, 2, 0);
                if (i < 0 || j < 0 || k < 0 || i >= at(s.in, 0, 1) || j >= at(s.in, 1, 1) || k >= at(s.in, 2, 1))
                  continue;
                cells.push_back((((n * at(s.in, 0, 1) + i) * at(s.in, 1, 1) + j) * at(s.in, 2, 1) + k) * s.channels);
              }
          f(o * s.channels, cells);
        }
}

std::vector<PoolShape> pool_shapes() {
  std::vector<PoolShape> v;
  auto add = [&](int64_t batch, int64_t h, int64_t w, int64_t c, int64_t kernel, int64_t stride, int64_t before,
                 int64_t after) {
    PoolShape s;
    s.batch = batch, s.channels = c, s.in = {h, w, 0}, s.kernel = {kernel, kernel, 1}, s.stride = {stride, stride, 1};
    s.pad_before = {before, before, 0}, s.pad_after = {after, after, 0};
    v.push_back(s);
  };
  add(3, 8, 8, 5, 2, 2, 0, 0);
  add(2, 7, 9, 33, 2, 2, 0, 1);
  add(50, 28, 28, 32, 2, 2, 0, 0);
  add(4, 56, 56, 64, 3, 2, 0, 1);
  add(2, 13, 13, 16, 3, 1, 1, 1);
  add(1, 200, 200, 20, 3, 2, 1, 1);
  add(1, 130, 60, 40, 5, 1, 2, 2);
  add(2, 11, 11, 3, 2, 3, 0, 0);  // stride > kernel: cells that no window covers
  add(2, 11, 11, 3, 2, 3, 1, 1);
  add(1, 1, 1, 1, 1, 1, 0, 0);
  add(2, 3, 3, 4, 3, 1, 0, 0);
  add(2, 4, 4, 4, 2, 2, 3, 3);  // windows of padding alone
  add(0, 4, 4, 4, 2, 2, 0, 0);
  add(2, 4, 4, 0, 2, 2, 0, 0);
  add(2, 2, 2, 3, 3, 1, 0, 0);  // no output
  PoolShape s;
  s.dims = 3, s.batch = 2, s.channels = 7, s.in = {5, 6, 7}, s.kernel = {2, 3, 2}, s.stride = {2, 1, 3};
  s.pad_before = {1, 0, 0}, s.pad_after = {0, 2, 1};
  v.push_back(s);
  s.kernel = {3, 3, 3}, s.stride = {1, 2, 2}, s.in = {9, 40, 40}, s.channels = 24;
  v.push_back(s);
  s = v[1];
  s.kernel = {1, 3, 1}, s.stride = {1, 2, 1};
  v.push_back(s);
  return v;
}

template <class T>
void check_max(const PoolShape& s, bool backward) {
  const auto x = vector_with_ties<T>(s.in_size(), 1), dy = vector_with_ties<T>(s.out_size(), 2);
  std::vector<T> want(dy.size()), dx_want(x.size());
  each_window(s, [&](int64_t o, const std::vector<int64_t>& cells) {
    for (int64_t c = 0; c < s.channels; ++c) {
      const T none =
          std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
      want[o + c] = cells.empty() ? none : x[cells[0] + c];
      int64_t first = cells.empty() ? 0 : cells[0];
      for (int64_t cell : cells) {
        if (x[cell + c] > want[o + c]) want[o + c] = x[cell + c], first = cell;
      }
      if (!cells.empty()) dx_want[first + c] += dy[o + c];
    }
  });
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    std::vector<T> y(dy.size(), T(99)), dx(x.size(), T(99));
    max_pool_forward<T>(s, x.data(), y.data());
    ASSERT_EQ(want, y);
    if constexpr (std::is_floating_point_v<T>) {
      if (!backward) continue;
      max_pool_backward<T>(s, x.data(), y.data(), dy.data(), dx.data());
      ASSERT_EQ(dx_want, dx);  // small integers: exact
    }
  }
}

template <class T>
void check_avg(const PoolShape& s) {
  const auto x = vector_with_ties<T>(s.in_size(), 1), dy = vector_with_ties<T>(s.out_size(), 2);
  std::vector<double> want(dy.size()), dx_want(x.size());
  each_window(s, [&](int64_t o, const std::vector<int64_t>& cells) {
    const double count = static_cast<double>(cells.size());
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t cell : cells) {
        want[o + c] += static_cast<double>(x[cell + c]) / count;
        dx_want[cell + c] += static_cast<double>(dy[o + c]) / count;
      }
    }
  });
  std::vector<T> y[2], dx[2];
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    y[threads - 1].assign(dy.size(), T(99)), dx[threads - 1].assign(x.size(), T(99));
    avg_pool_forward<T>(s, x.data(), y[threads - 1].data());
    avg_pool_backward<T>(s, dy.data(), dx[threads - 1].data());
  }
  ASSERT_EQ(y[0], y[1]);
  ASSERT_EQ(dx[0], dx[1]);
  const double tolerance = std::is_same_v<T, float> ? 5e-6 : 1e-13;
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], y[0][i], tolerance);
  for (size_t i = 0; i < dx_want.size(); ++i) ASSERT_NEAR(dx_want[i], dx[0][i], tolerance);
}

TEST(Pool, MaxMatchesNaive) {
  for (const PoolShape& s : pool_shapes()) {
    SCOPED_TRACE(testing::Message() << s.in[0] << "x" << s.in[1] << "x" << s.channels << " kernel " << s.kernel[0]
                                    << " stride " << s.stride[0]);
    check_max<float>(s, true);
    check_max<double>(s, true);
    check_max<int32_t>(s, false);
    check_max<uint8_t>(s, false);
    check_max<int64_t>(s, false);
  }
}

TEST(Pool, AverageMatchesNaive) {
  for (const PoolShape& s : pool_shapes()) {
    SCOPED_TRACE(testing::Message() << s.in[0] << "x" << s.in[1] << "x" << s.channels << " kernel " << s.kernel[0]
                                    << " stride " << s.stride[0]);
    check_avg<float>(s);
    check_avg<double>(s);
  }
}

TEST(Pool, NanIsTheMaximumAndTakesTheGradient) {
  PoolShape s;
  s.batch = 1, s.channels = 1, s.in = {1, 4, 0}, s.kernel = {1, 4, 1}, s.stride = {1, 4, 1};
  const float x[4] = {1, NAN, 5, 2}, dy[1] = {3};
  float y[1], dx[4];
  max_pool_forward<float>(s, x, y);
  EXPECT_TRUE(std::isnan(y[0]));
  max_pool_backward<float>(s, x, y, dy, dx);
  EXPECT_EQ(3, dx[0] + dx[1] + dx[2] + dx[3]);
}

}  // namespace
}  // namespace runnel::cpu
