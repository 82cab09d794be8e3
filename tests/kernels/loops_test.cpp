#include "runnel/kernels/cpu/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/broadcast.h"
#include "runnel/tensor/type_sets.h"

namespace runnel::cpu {
namespace {

using Shape = std::vector<int64_t>;

template <class T>
std::vector<T> random_values(int64_t n, int seed = 1) {
  std::mt19937 gen(seed);
  std::vector<T> v(n);
  for (auto& x : v) x = static_cast<T>(static_cast<int>(gen() % 201) - 100);
  return v;
}

constexpr auto add = [](auto a, auto b) { return a + b; };
constexpr auto sub = [](auto a, auto b) { return a - b; };
constexpr auto less = [](auto a, auto b) { return a < b; };
constexpr auto relu = [](auto x) { return x > 0 ? x : decltype(x)(0); };
constexpr auto select = [](bool c, auto a, auto b) { return c ? a : b; };
using Add = decltype(add);
using Sub = decltype(sub);

struct Leaky {
  double alpha = 0.25;
};
constexpr auto leaky = [](auto x, const Leaky& a) { return x > 0 ? x : x * a.alpha; };

template <class T>
class LoopsTyped : public testing::Test {};
using Types = testing::Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(LoopsTyped, Types);

TYPED_TEST(LoopsTyped, EveryLengthAndKind) {
  using T = TypeParam;
  for (int64_t n : {0, 1, 2, 3, 7, 8, 9, 10, 31, 33, 100, 1000, 100001}) {
    const auto a = random_values<T>(n + 1, 1), b = random_values<T>(n + 1, 2);
    std::vector<T> y(n + 1, T(77));
    binary_loop<Sub>(a.data(), b.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], static_cast<T>(a[i] - b[i])) << i << " of " << n;
    ASSERT_EQ(y[n], T(77));
    binary_loop_vs<Sub>(a.data(), &b[n], y.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], static_cast<T>(a[i] - b[n]));
    binary_loop_sv<Sub>(&a[n], b.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], static_cast<T>(a[n] - b[i]));
    unary_loop<decltype(relu)>(a.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] > 0 ? a[i] : T(0));
    const auto flags = std::make_unique<bool[]>(n + 1);
    binary_loop<decltype(less)>(a.data(), b.data(), flags.get(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(flags[i], a[i] < b[i]);
    ternary_loop<decltype(select)>(flags.get(), a.data(), b.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], flags[i] ? a[i] : b[i]);
    ASSERT_EQ(y[n], T(77));
  }
}

TEST(Loops, AttributesReachTheFunctor) {
  const auto x = random_values<float>(1000);
  std::vector<float> y(1000);
  unary_loop<decltype(leaky)>(x.data(), y.data(), 1000, Leaky{0.5});
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(y[i], x[i] > 0 ? x[i] : x[i] * 0.5f);
}

template <class Small>
void check_half() {
  const int64_t n = 70001;
  const auto fa = random_values<float>(n, 1), fb = random_values<float>(n, 2);
  std::vector<Small> a, b, y(n);
  for (int64_t i = 0; i < n; ++i) {
    a.push_back(Small(fa[i] * 0.37f));
    b.push_back(Small(fb[i] * 1.13f));
  }
  binary_loop<Sub>(a.data(), b.data(), y.data(), n);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(float(y[i]), float(Small(float(a[i]) - float(b[i])))) << i;
  binary_loop_vs<Sub>(a.data(), &b[5], y.data(), n);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(float(y[i]), float(Small(float(a[i]) - float(b[5])))) << i;
  binary_loop_sv<Sub>(&a[5], b.data(), y.data(), n);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(float(y[i]), float(Small(float(a[5]) - float(b[i])))) << i;
  unary_loop<decltype(relu)>(a.data(), y.data(), n);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(float(y[i]), a[i] > 0 ? float(a[i]) : 0.0f) << i;
  const auto flags = std::make_unique<bool[]>(n);
  binary_loop<decltype(less)>(a.data(), b.data(), flags.get(), n);
  ternary_loop<decltype(select)>(flags.get(), a.data(), b.data(), y.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(flags[i], float(a[i]) < float(b[i]));
    ASSERT_EQ(float(y[i]), std::min(float(a[i]), float(b[i])));
  }
}

TEST(Loops, HalfTypesComputeInFloat) {
  check_half<Half>();
  check_half<BFloat16>();
}

TEST(Loops, InPlace) {
  auto x = random_values<float>(100000);
  const auto before = x;
  binary_loop<Add>(x.data(), x.data(), x.data(), 100000);
  for (int i = 0; i < 100000; ++i) ASSERT_EQ(x[i], before[i] + before[i]);
}

struct CountingBlock {
  float operator()(float) const { return -1; }
  static void block(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 3;
  }
};

TEST(Loops, BlockFunctorIsPreferred) {
  const auto x = random_values<float>(100000);
  std::vector<float> y(100000);
  unary_loop<CountingBlock>(x.data(), y.data(), 100000);
  for (int i = 0; i < 100000; ++i) ASSERT_EQ(y[i], x[i] * 3);
}

// Naive broadcasting: the output index is taken apart and every operand is addressed from scratch.
int64_t source_index(int64_t flat, const Shape& out, const Shape& in) {
  int64_t index = 0, step = 1;
  for (size_t back = 1; back <= out.size(); ++back) {
    const int64_t i = flat % out[out.size() - back];
    flat /= out[out.size() - back];
    if (back > in.size()) continue;
    const int64_t d = in[in.size() - back];
    index += (d == 1 ? 0 : i) * step;
    step *= d;
  }
  return index;
}

struct Case {
  Shape a, b, out;
};
const Case kCases[] = {
    {{}, {}, {}},
    {{5}, {}, {5}},
    {{}, {5}, {5}},
    {{100000}, {1}, {100000}},
    {{6, 5}, {5}, {6, 5}},
    {{600, 5}, {5}, {600, 5}},
    {{600, 100}, {100}, {600, 100}},
    {{600, 1}, {1, 100}, {600, 100}},
    {{600, 1}, {1, 3}, {600, 3}},
    {{1, 3}, {6000, 1}, {6000, 3}},
    {{4, 7, 9, 5}, {5}, {4, 7, 9, 5}},
    {{4, 7, 9, 64}, {64}, {4, 7, 9, 64}},
    {{4, 1, 9, 1}, {7, 1, 5}, {4, 7, 9, 5}},
    {{4, 1, 1, 50}, {4, 7, 9, 50}, {4, 7, 9, 50}},
    {{3, 1, 70000}, {1, 2, 70000}, {3, 2, 70000}},
    {{3, 1, 70000}, {2, 1}, {3, 2, 70000}},
    {{1, 1}, {1}, {4, 600}},
    {{4, 1}, {1}, {4, 600}},
    {{3, 1, 1, 1}, {1, 2, 1, 1}, {3, 2, 5, 200}},
    {{0, 5}, {5}, {0, 5}},
    {{5, 0}, {5, 1}, {5, 0}},
    {{2, 1, 2, 1, 2, 1, 2, 1}, {2, 1, 2, 1, 2, 1, 2}, {2, 2, 2, 2, 2, 2, 2, 2}},
};

template <class T>
void check_broadcast() {
  for (const Case& c : kCases) {
    const int64_t n = num_elements(c.out);
    const auto a = random_values<T>(num_elements(c.a), 3), b = random_values<T>(num_elements(c.b), 4);
    std::vector<T> y(n + 1, T(55)), z(n + 1, T(55));
    binary_broadcast<Sub>(a.data(), c.a, b.data(), c.b, y.data(), c.out);
    const auto flags = std::make_unique<bool[]>(a.size() + 1);
    for (size_t i = 0; i < a.size(); ++i) flags[i] = i % 3 == 1;
    ternary_broadcast<decltype(select)>(flags.get(), c.a, b.data(), c.b, a.data(), c.a, z.data(), c.out);
    std::vector<T> copy(n + 1, T(55));
    broadcast_to(b.data(), c.b, copy.data(), c.out, sizeof(T));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t ia = source_index(i, c.out, c.a), ib = source_index(i, c.out, c.b);
      ASSERT_EQ(y[i], static_cast<T>(a[ia] - b[ib])) << i << " of " << testing::PrintToString(c.out);
      ASSERT_EQ(z[i], flags[ia] ? b[ib] : a[ia]) << i << " of " << testing::PrintToString(c.out);
      ASSERT_EQ(copy[i], b[ib]) << i << " of " << testing::PrintToString(c.out);
    }
    ASSERT_EQ(y[n], T(55));
    ASSERT_EQ(z[n], T(55));
    ASSERT_EQ(copy[n], T(55));
  }
}

TEST(Broadcast, MatchesNaive) {
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    check_broadcast<float>();
    check_broadcast<int8_t>();
    check_broadcast<int16_t>();
    check_broadcast<double>();
  }
}

TEST(Broadcast, PlanMergesDimensions) {
  const Shape out{4, 7, 9, 64}, full{4, 7, 9, 64}, row{64}, one{};
  EXPECT_EQ(make_broadcast_plan(out, {full, row}).rank, 2);
  EXPECT_EQ(make_broadcast_plan(out, {full, full}).rank, 1);
  EXPECT_EQ(make_broadcast_plan(out, {full, one}).rank, 1);
  const Shape bad{63};
  EXPECT_ANY_THROW(make_broadcast_plan(out, {full, bad}));
}

}  // namespace
}  // namespace runnel::cpu
