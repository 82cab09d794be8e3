#include "runnel/kernels/cpu/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "runnel/base/parallel.h"
#include "runnel/tensor/half.h"
#include "runnel/tensor/type_sets.h"

namespace runnel::cpu {
namespace {

using Shape = std::vector<int64_t>;

int64_t elements(const Shape& s) {
  int64_t n = 1;
  for (int64_t d : s) n *= d;
  return n;
}

Shape kept(const Shape& shape, const Shape& axes) {
  Shape out;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), int64_t(d)) == axes.end()) out.push_back(shape[d]);
  }
  return out;
}

// The flat output index of a flat input index.
int64_t target(int64_t flat, const Shape& shape, const Shape& axes) {
  int64_t index = 0, step = 1;
  for (int64_t d = int64_t(shape.size()) - 1; d >= 0; --d) {
    const int64_t i = flat % shape[d];
    flat /= shape[d];
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
    index += i * step;
    step *= shape[d];
  }
  return index;
}

struct Reduced {
  Shape shape, axes;
};
const Reduced kReduced[] = {
    {{}, {}},
    {{1}, {0}},
    {{7}, {0}},
    {{100003}, {0}},
    {{50, 100}, {0}},
    {{50, 100}, {1}},
    {{50, 100}, {0, 1}},
    {{50, 100}, {}},
    {{2000, 64}, {0}},
    {{9000, 3}, {0}},
    {{9001, 1}, {0}},
    {{9001, 1}, {1}},
    {{30, 9000}, {0}},
    {{3, 90000}, {1}},
    {{40, 9000}, {1}},
    {{6, 7, 8}, {1}},
    {{6, 7, 8}, {0, 2}},
    {{100, 7, 8}, {1}},
    {{5, 12, 6, 10}, {0, 1, 2}},
    {{5, 12, 6, 10}, {1, 3}},
    {{5, 12, 6, 10}, {0, 2}},
    {{3, 1, 5, 1, 7}, {1, 2}},
    {{2, 700, 40}, {1}},
    {{0, 5}, {0}},
    {{0, 5}, {1}},
    {{5, 0}, {0, 1}},
};

template <class T>
std::vector<T> values(int64_t n, int range) {
  std::mt19937 gen(5);
  std::vector<T> v(n);
  for (auto& x : v) {
    const int i = static_cast<int>(gen() % range);
    x = static_cast<T>(static_cast<float>(std::numeric_limits<T>::is_signed ? i - range / 2 : i));
  }
  return v;
}

template <class T>
class ReduceTyped : public testing::Test {};
using ReducedTypes = testing::Types<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                                    uint32_t, uint64_t>;
TYPED_TEST_SUITE(ReduceTyped, ReducedTypes);

// Integer values: sums are exact (or wrap) in every type, so results must be equal, not close.
TYPED_TEST(ReduceTyped, MatchesNaive) {
  using T = TypeParam;
  constexpr bool integer = std::numeric_limits<T>::is_integer;
  for (const Reduced& c : kReduced) {
    const int64_t n = elements(c.shape), m = elements(kept(c.shape, c.axes));
    const auto x = values<T>(n, 9);
    std::vector<double> sum(m, 0), top(m, -INFINITY), bottom(m, INFINITY);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t o = target(i, c.shape, c.axes);
      sum[o] += double(x[i]);
      top[o] = std::max(top[o], double(x[i]));
      bottom[o] = std::min(bottom[o], double(x[i]));
    }
    std::vector<T> y(m + 1, T(3.0f));
    const auto what = testing::PrintToString(c.shape) + " over " + testing::PrintToString(c.axes);
    reduce<T>(Reduction::sum, x.data(), c.shape, c.axes, y.data());
    for (int64_t o = 0; o < m; ++o) {
      if constexpr (integer) {
        ASSERT_EQ(y[o], static_cast<T>(static_cast<int64_t>(sum[o]))) << what;
      } else {
        ASSERT_EQ(double(y[o]), double(T(static_cast<float>(sum[o])))) << what;
      }
    }
    ASSERT_EQ(double(y[m]), 3) << what;
    const double count = m == 0 ? 0 : double(n) / m;
    reduce<T>(Reduction::mean, x.data(), c.shape, c.axes, y.data());
    for (int64_t o = 0; o < m; ++o) {
      if constexpr (integer) {
        if constexpr (sizeof(T) >= 4) {
          ASSERT_EQ(y[o], count == 0 ? T(0) : T(int64_t(sum[o]) / int64_t(count))) << what;
        }
      } else if (count == 0) {
        ASSERT_TRUE(std::isnan(double(y[o])));
      } else {
        ASSERT_NEAR(double(y[o]), sum[o] / count, 1e-2 * (1 + std::abs(sum[o] / count))) << what;
      }
    }
    if (count == 0) continue;
    reduce<T>(Reduction::max, x.data(), c.shape, c.axes, y.data());
    for (int64_t o = 0; o < m; ++o) ASSERT_EQ(double(y[o]), top[o]) << what;
    reduce<T>(Reduction::min, x.data(), c.shape, c.axes, y.data());
    for (int64_t o = 0; o < m; ++o) ASSERT_EQ(double(y[o]), bottom[o]) << what;
  }
}

TYPED_TEST(ReduceTyped, EmptyReductionsGiveTheIdentity) {
  using T = TypeParam;
  using L = std::numeric_limits<T>;
  const Shape shape{0, 2}, axes{0};
  T y[2];
  reduce<T>(Reduction::prod, nullptr, shape, axes, y);
  EXPECT_EQ(double(y[1]), 1);
  reduce<T>(Reduction::max, nullptr, shape, axes, y);
  EXPECT_EQ(double(y[1]), L::is_integer ? double(L::lowest()) : -INFINITY);
  reduce<T>(Reduction::min, nullptr, shape, axes, y);
  EXPECT_EQ(double(y[1]), L::is_integer ? double(L::max()) : INFINITY);
}

TYPED_TEST(ReduceTyped, Product) {
  using T = TypeParam;
  for (const Reduced& c : kReduced) {
    const int64_t n = elements(c.shape), m = elements(kept(c.shape, c.axes));
    std::vector<T> x(n);
    std::vector<uint64_t> bits(m, 1);
    std::vector<double> product(m, 1);
    for (int64_t i = 0; i < n; ++i) {
      const double v = std::numeric_limits<T>::is_integer ? 2 * (i % 50) + 1 : (i % 3 == 0 ? 2 : i % 3 == 1 ? 0.5 : -1);
      x[i] = static_cast<T>(static_cast<float>(v));
      bits[target(i, c.shape, c.axes)] *= static_cast<uint64_t>(static_cast<int64_t>(v));
      product[target(i, c.shape, c.axes)] *= v;
    }
    std::vector<T> y(m);
    reduce<T>(Reduction::prod, x.data(), c.shape, c.axes, y.data());
    for (int64_t o = 0; o < m; ++o) {
      if constexpr (std::numeric_limits<T>::is_integer) {
        ASSERT_EQ(y[o], static_cast<T>(bits[o]));
      } else {
        if (std::abs(product[o]) < 1e-3 || std::abs(product[o]) > 1e3) continue;  // the order decides overflow
        ASSERT_EQ(double(y[o]), product[o]);
      }
    }
  }
}

TEST(Reduce, NanWinsInMaxAndMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Reduced& c : kReduced) {
    const int64_t n = elements(c.shape), m = elements(kept(c.shape, c.axes));
    if (n == 0) continue;
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      auto x = values<float>(n, 100);
      x[at] = nan;
      std::vector<float> y(m);
      for (auto op : {Reduction::max, Reduction::min}) {
        reduce<float>(op, x.data(), c.shape, c.axes, y.data());
        for (int64_t o = 0; o < m; ++o) ASSERT_EQ(std::isnan(y[o]), o == target(at, c.shape, c.axes));
      }
    }
  }
}

TEST(Reduce, AnyAndAll) {
  for (const Reduced& c : kReduced) {
    const int64_t n = elements(c.shape), m = elements(kept(c.shape, c.axes));
    for (int density : {2, 1000}) {
      std::mt19937 gen(9);
      const auto x = std::make_unique<bool[]>(n + 1), y = std::make_unique<bool[]>(m + 1);
      const auto any = std::make_unique<bool[]>(m + 1), all = std::make_unique<bool[]>(m + 1);
      std::fill(all.get(), all.get() + m, true);
      for (int64_t i = 0; i < n; ++i) {
        x[i] = gen() % density == 0;
        const int64_t o = target(i, c.shape, c.axes);
        any[o] = any[o] || x[i];
        all[o] = all[o] && x[i];
      }
      reduce<bool>(Reduction::any, x.get(), c.shape, c.axes, y.get());
      ASSERT_TRUE(std::equal(y.get(), y.get() + m, any.get()));
      reduce<bool>(Reduction::all, x.get(), c.shape, c.axes, y.get());
      ASSERT_TRUE(std::equal(y.get(), y.get() + m, all.get()));
    }
  }
  bool y;
  const bool x[] = {true};
  EXPECT_ANY_THROW(reduce<bool>(Reduction::sum, x, Shape{1}, Shape{0}, &y));
}

TEST(Reduce, Complex) {
  using C = std::complex<double>;
  for (const Reduced& c : kReduced) {
    const int64_t n = elements(c.shape), m = elements(kept(c.shape, c.axes));
    std::vector<C> x(n), want(m), y(m);
    for (int64_t i = 0; i < n; ++i) {
      x[i] = C(i % 11, i % 7 - 3);
      want[target(i, c.shape, c.axes)] += x[i];
    }
    reduce<C>(Reduction::sum, x.data(), c.shape, c.axes, y.data());
    ASSERT_EQ(y, want);
  }
}

TEST(Reduce, FloatSumIsAccurate) {
  const int64_t n = 1 << 20;
  std::mt19937 gen(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> x(n);
  double exact = 0;
  for (auto& v : x) exact += v = uniform(gen);
  float y;
  reduce<float>(Reduction::sum, x.data(), Shape{n}, Shape{0}, &y);
  EXPECT_NEAR(y, exact, 4e-7 * exact);
  std::vector<float> columns(16);
  reduce<float>(Reduction::sum, x.data(), Shape{n / 16, 16}, Shape{0}, columns.data());
  for (int j = 0; j < 16; ++j) {
    double want = 0;
    for (int64_t i = j; i < n; i += 16) want += x[i];
    EXPECT_NEAR(columns[j], want, 6e-7 * want);
  }
}

TEST(Reduce, SameBitsWithOneAndTwoThreads) {
  std::mt19937 gen(2);
  std::normal_distribution<float> normal;
  const Reduced cases[] = {{{1 << 20}, {0}},           {{1000, 1000}, {0}},   {{1000, 1000}, {1}},
                           {{15625, 64}, {0}},         {{300000, 3}, {0}},    {{4, 250000}, {1}},
                           {{4, 250000}, {0}},         {{20, 300, 150}, {1}}, {{10, 200, 50, 9}, {0, 2}},
                           {{100, 30, 30, 10}, {1, 3}}};
  for (const Reduced& c : cases) {
    const int64_t n = elements(c.shape), m = elements(kept(c.shape, c.axes));
    std::vector<float> x(n), one(m), two(m);
    for (auto& v : x) v = normal(gen);
    for (auto op : {Reduction::sum, Reduction::mean, Reduction::prod, Reduction::max}) {
      set_num_threads(1);
      reduce<float>(op, x.data(), c.shape, c.axes, one.data());
      set_num_threads(2);
      reduce<float>(op, x.data(), c.shape, c.axes, two.data());
      ASSERT_EQ(std::memcmp(one.data(), two.data(), m * sizeof(float)), 0) << testing::PrintToString(c.shape);
    }
  }
}

TEST(ArgReduce, MatchesNaive) {
  const int64_t shapes[][3] = {{1, 1000, 1}, {50, 10, 1},    {3, 7, 5}, {2, 300, 130},
                               {1, 5, 100},  {100000, 3, 1}, {0, 3, 2}};
  for (const auto& [outer, reduced, inner] : shapes) {
    const auto x = values<int>(outer * reduced * inner, 50);
    std::vector<float> f(x.begin(), x.end());
    std::vector<int64_t> y(outer * inner);
    std::vector<int32_t> z(outer * inner);
    arg_reduce(true, f.data(), outer, reduced, inner, y.data());
    arg_reduce(false, x.data(), outer, reduced, inner, z.data());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t j = 0; j < inner; ++j) {
        int64_t best = 0, least = 0;
        const auto at = [&](int64_t i) { return x[(o * reduced + i) * inner + j]; };
        for (int64_t i = 1; i < reduced; ++i) {
          if (at(i) > at(best)) best = i;
          if (at(i) < at(least)) least = i;
        }
        ASSERT_EQ(y[o * inner + j], best);
        ASSERT_EQ(z[o * inner + j], least);
      }
    }
  }
}

}  // namespace
}  // namespace runnel::cpu
