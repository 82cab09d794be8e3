#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};
template <class T>
constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Small values of any dtype: products of a few of them stay exact in most types.
template <class T>
Tensor values(const Shape& shape, int seed = 1) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<T> v;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const int k = static_cast<int>(random() % 4);
    if constexpr (IsComplex<T>::value) {
      v.push_back(T(static_cast<float>(k), static_cast<float>(k % 2)));
    } else if constexpr (std::is_floating_point_v<T> || is_half_type<T>) {
      v.push_back(T(static_cast<float>(k) * 0.5f - 0.5f));
    } else {
      v.push_back(static_cast<T>(k));
    }
  }
  return Tensor::of<T>(v, shape);
}

// One element at a time, with plain index arithmetic: fold(accumulator, element) from `start`.
template <class T, class A>
std::vector<A> naive_reduce(const Tensor& x, const std::vector<int>& axes, A start, std::function<A(A, T)> fold,
                            int64_t* count = nullptr) {
  const Shape& s = x.shape();
  std::vector<bool> reduced(static_cast<size_t>(s.rank()), false);
  for (int a : axes) reduced[static_cast<size_t>(a < 0 ? a + s.rank() : a)] = true;
  int64_t kept = 1;
  for (int i = 0; i < s.rank(); ++i) kept *= reduced[static_cast<size_t>(i)] ? 1 : s[i];
  std::vector<A> y(static_cast<size_t>(kept), start);
  const auto elements = x.to_vector<T>();
  for (size_t k = 0; k < elements.size(); ++k) {
    int64_t rest = static_cast<int64_t>(k);
    int64_t at = 0;
    int64_t step = 1;
    for (int i = s.rank() - 1; i >= 0; --i) {
      if (!reduced[static_cast<size_t>(i)]) {
        at += rest % s[i] * step;
        step *= s[i];
      }
      rest /= s[i];
    }
    y[static_cast<size_t>(at)] = fold(y[static_cast<size_t>(at)], elements[k]);
  }
  if (count) *count = kept == 0 ? 0 : static_cast<int64_t>(elements.size()) / kept;
  return y;
}

template <class T>
void expect_values(const Tensor& got, const Shape& shape, const std::vector<T>& want) {
  ASSERT_EQ(got.shape(), shape);
  const auto v = got.to_vector<T>();
  ASSERT_EQ(v.size(), want.size());
  for (size_t i = 0; i < v.size(); ++i) {
    if constexpr (IsComplex<T>::value) {
      EXPECT_NEAR(std::abs(v[i] - want[i]), 0, 1e-4) << i;
    } else if constexpr (is_half_type<T>) {
      EXPECT_NEAR(static_cast<float>(v[i]), static_cast<float>(want[i]), 0.02f * (1 + std::abs(float(want[i])))) << i;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(v[i])) << i;
      } else {
        EXPECT_FLOAT_EQ(static_cast<float>(v[i]), static_cast<float>(want[i])) << i;
      }
    } else {
      EXPECT_EQ(v[i], want[i]) << i;
    }
  }
}

struct Case {
  Shape shape;
  std::vector<int> axes;
};
const std::vector<Case> cases = {
    {{5}, {0}},           {{2, 3}, {0}},       {{2, 3}, {1}},          {{2, 3}, {0, 1}}, {{2, 3, 4}, {1}},
    {{2, 3, 4}, {-1, 0}}, {{2, 3, 4}, {0, 2}}, {{3, 1, 2, 2}, {1, 3}}, {{2, 3}, {}},     {{}, {}},
    {{1, 1}, {0}},
};

Axes axes_of(const std::vector<int>& axes) { return {std::vector<int64_t>(axes.begin(), axes.end())}; }

Shape reduced_shape(const Case& c, bool keep) {
  Dims dims;
  for (int i = 0; i < c.shape.rank(); ++i) {
    const bool reduced =
        std::count(c.axes.begin(), c.axes.end(), i) + std::count(c.axes.begin(), c.axes.end(), i - c.shape.rank()) > 0;
    if (!reduced) dims.push_back(c.shape[i]);
    if (reduced && keep) dims.push_back(1);
  }
  return Shape(dims);
}

TEST(Reduce, MatchesNaiveLoopsForEveryDtype) {
  numbers.for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    using A = std::conditional_t<is_half_type<T>, float, T>;
    for (const Case& c : cases) {
      SCOPED_TRACE(c.shape.str());
      for (bool keep : {false, true}) {
        const Shape shape = reduced_shape(c, keep);
        const Tensor x = values<T>(c.shape);
        auto check = [&](const Tensor& got, const std::vector<A>& want) {
          std::vector<T> stored;
          for (A w : want) stored.push_back(static_cast<T>(w));
          expect_values<T>(got, shape, stored);
        };
        int64_t count = 0;
        auto sum = naive_reduce<T, A>(
            x, c.axes, A(0), [](A a, T v) { return static_cast<A>(a + A(v)); }, &count);
        check(reduce_sum(x, axes_of(c.axes), keep), sum);
        for (A& s : sum) {
          if constexpr (std::is_integral_v<A>) {
            s = static_cast<A>(s / static_cast<A>(count));
          } else {
            s = s / static_cast<A>(count);
          }
        }
        check(reduce_mean(x, axes_of(c.axes), keep), sum);
        check(reduce_prod(x, axes_of(c.axes), keep),
              naive_reduce<T, A>(x, c.axes, A(1), [](A a, T v) { return static_cast<A>(a * A(v)); }));
        if constexpr (!IsComplex<T>::value) {
          check(reduce_max(x, axes_of(c.axes), keep),
                naive_reduce<T, A>(x, c.axes, std::numeric_limits<A>::lowest(),
                                   [](A a, T v) { return std::max(a, static_cast<A>(v)); }));
          check(reduce_min(x, axes_of(c.axes), keep),
                naive_reduce<T, A>(x, c.axes, std::numeric_limits<A>::max(),
                                   [](A a, T v) { return std::min(a, static_cast<A>(v)); }));
        }
      }
    }
  });
}

TEST(Reduce, AnyAndAll) {
  const Tensor x{{true, false, false}, {true, true, true}};
  EXPECT_EQ(reduce_any(x, 0).to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(reduce_all(x, 1).to_vector<bool>(), (std::vector<bool>{false, true}));
  EXPECT_TRUE(reduce_any(x).item<bool>());
  EXPECT_FALSE(reduce_all(x).item<bool>());
  EXPECT_EQ(reduce_all(x, -1, true).shape(), (Shape{2, 1}));
}

TEST(Reduce, EveryAxisWhenNoneIsNamed) {
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}};
  EXPECT_EQ(reduce_sum(x).shape(), Shape{});
  EXPECT_EQ(reduce_sum(x).item<float>(), 10);
  EXPECT_EQ(reduce_mean(x, {}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(reduce_max(3.5f).item<float>(), 3.5f);
}

TEST(Reduce, EmptyTensors) {
  const Tensor x = Tensor::empty(DType::float32, {0, 2});
  const float inf = std::numeric_limits<float>::infinity();
  expect_values<float>(reduce_sum(x, 0), {2}, {0, 0});
  expect_values<float>(reduce_prod(x, 0), {2}, {1, 1});
  expect_values<float>(reduce_max(x, 0), {2}, {-inf, -inf});
  expect_values<float>(reduce_min(x, 0), {2}, {inf, inf});
  expect_values<float>(reduce_mean(x, 0), {2}, {NAN, NAN});
  EXPECT_EQ(reduce_sum(x, 1).shape(), Shape{0});
  EXPECT_EQ(reduce_sum(x).item<float>(), 0);
  const Tensor i = Tensor::empty(DType::int32, {0});
  EXPECT_EQ(reduce_max(i).item<int32_t>(), std::numeric_limits<int32_t>::lowest());
  EXPECT_EQ(reduce_min(i).item<int32_t>(), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(reduce_sum(i).item<int32_t>(), 0);
  const Tensor b = Tensor::empty(DType::bool_, {0});
  EXPECT_FALSE(reduce_any(b).item<bool>());
  EXPECT_TRUE(reduce_all(b).item<bool>());
}

TEST(Reduce, NanShows) {
  const Tensor x{1.f, NAN, 3.f};
  EXPECT_TRUE(std::isnan(reduce_max(x).item<float>()));
  EXPECT_TRUE(std::isnan(reduce_min(x).item<float>()));
  EXPECT_TRUE(std::isnan(reduce_sum(x).item<float>()));
}

TEST(Reduce, Errors) {
  const Tensor x{{1.f, 2.f}};
  expect_error([&] { reduce_sum(x, 2); }, Code::invalid_argument, "[Sum] axis 2 is out of range");
  expect_error([&] { reduce_mean(x, -3); }, Code::invalid_argument, "out of range");
  expect_error([&] { reduce_max(x, {0, -2}); }, Code::invalid_argument, "named twice");
  expect_error([&] { reduce_any(x); }, Code::invalid_argument, "[Any] input must be bool, got float32");
  expect_error([&] { reduce_sum(Tensor{true}); }, Code::invalid_argument, "cannot be bool");
  expect_error([&] { reduce_max(Tensor(std::complex<float>(1, 2))); }, Code::invalid_argument, "complex64");
  expect_error([&] { reduce_sum(Tensor("text")); }, Code::invalid_argument, "cannot be string");
}

// Twice the work at once must not show in a single bit.
void expect_same_bits(const std::function<Tensor()>& run) {
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = run();
  set_num_threads(2);
  const Tensor two = run();
  set_num_threads(before);
  ASSERT_EQ(one.shape(), two.shape());
  EXPECT_EQ(std::memcmp(one.raw(), two.raw(), one.num_bytes()), 0);
}

Tensor noise(const Shape& shape) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Tensor x = Tensor::empty(DType::float32, shape);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.mutable_data<float>()[i] = uniform(random);
  return x;
}

TEST(Reduce, SameBitsWithOneAndTwoThreads) {
  const std::vector<Case> big = {
      {{1000003}, {0}}, {{1024, 1025}, {0}}, {{1024, 1025}, {1}}, {{64, 130, 127}, {0, 2}}, {{64, 130, 127}, {1}}};
  for (const Case& c : big) {
    SCOPED_TRACE(c.shape.str());
    const Tensor x = noise(c.shape);
    expect_same_bits([&] { return reduce_sum(x, axes_of(c.axes)); });
    expect_same_bits([&] { return reduce_mean(x, axes_of(c.axes)); });
    expect_same_bits([&] { return reduce_prod(x, axes_of(c.axes)); });
    expect_same_bits([&] { return reduce_max(x, axes_of(c.axes)); });
    expect_same_bits([&] { return argmax(x, c.axes[0]); });
  }
}

TEST(Reduce, LargeSumsStayAccurate) {
  const Tensor x = noise({1 << 20});
  double exact = 0;
  double magnitude = 0;
  for (float v : x.host<float>()) {
    exact += v;
    magnitude += std::abs(v);
  }
  EXPECT_NEAR(reduce_sum(x).item<float>(), exact, magnitude * 1e-7);
  EXPECT_NEAR(reduce_mean(x).item<float>(), exact / (1 << 20), magnitude * 1e-7 / (1 << 20));
  const Tensor tenths = fill({1 << 20}, 0.1f);
  EXPECT_NEAR(reduce_sum(tenths).item<float>(), double{0.1f} * (1 << 20), 0.2);
  EXPECT_NEAR(reduce_mean(tenths).item<float>(), 0.1f, 2e-7);
}

TEST(ArgMax, MatchesNaiveLoopsForEveryDtype) {
  (real_numbers + booleans).for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    // Short rows in blocks and one by one, long ones, and columns.
    for (const Shape& s : {Shape{3, 4, 5}, Shape{7, 5, 9}, Shape{2, 3, 300}}) {
      const Tensor x = values<T>(s, 3);
      const auto v = x.to_vector<T>();
      for (int axis = 0; axis < 3; ++axis) {
        int64_t outer = 1;
        int64_t inner = 1;
        for (int i = 0; i < axis; ++i) outer *= s[i];
        for (int i = axis + 1; i < 3; ++i) inner *= s[i];
        std::vector<int64_t> most;
        std::vector<int64_t> least;
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t j = 0; j < inner; ++j) {
            int64_t hi = 0;
            int64_t lo = 0;
            auto at = [&](int64_t k) { return v[static_cast<size_t>((o * s[axis] + k) * inner + j)]; };
            for (int64_t k = 1; k < s[axis]; ++k) {
              if (at(k) > at(hi)) hi = k;
              if (at(k) < at(lo)) lo = k;
            }
            most.push_back(hi);
            least.push_back(lo);
          }
        }
        EXPECT_EQ(argmax(x, axis).to_vector<int64_t>(), most);
        EXPECT_EQ(argmin(x, axis - 3).to_vector<int64_t>(), least);
        EXPECT_EQ(argmax(x, axis, int32).to_vector<int32_t>(), std::vector<int32_t>(most.begin(), most.end()));
      }
    }
  });
}

// NaN is passed over, of equal numbers the first is taken, a row without a number that counts gives 0: in short rows
// alone and in blocks, in long rows by lanes, and in columns.
TEST(ArgMax, OddNumbers) {
  const auto check = []<class T>(T) {
    constexpr T kInf = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
    for (const auto& few : {std::vector<T>{kNan, -kInf, kInf},
                            {kNan},
                            {-kInf},
                            {kInf},
                            {T(0), -T(0)},
                            {kNan, -T(0), T(0)},
                            {-kInf, kNan, T(1), T(-1)},
                            {kNan, kInf, T(2)},
                            {-kInf, kNan, T(-3)}}) {
      for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{3, 9}, {37, 9}, {2, 128}, {3, 301}}) {
        std::mt19937 gen(static_cast<uint32_t>(rows * n));
        std::vector<T> v(static_cast<size_t>(rows * n));
        for (T& x : v) x = few[gen() % few.size()];
        std::vector<int64_t> most, least;
        for (int64_t r = 0; r < rows; ++r) {
          T high = -kInf, low = kInf;
          int64_t hi = 0, lo = 0;
          for (int64_t k = 0; k < n; ++k) {
            const T x = v[static_cast<size_t>(r * n + k)];
            if (x > high) high = x, hi = k;
            if (x < low) low = x, lo = k;
          }
          most.push_back(hi);
          least.push_back(lo);
        }
        SCOPED_TRACE(testing::Message() << rows << "x" << n << " of " << testing::PrintToString(few));
        const Tensor x = Tensor::of<T>(v, {rows, n});
        EXPECT_EQ(argmax(x, 1).to_vector<int64_t>(), most);
        EXPECT_EQ(argmin(x, 1).to_vector<int64_t>(), least);
        EXPECT_EQ(argmax(transpose(x), 0).to_vector<int64_t>(), most);
        EXPECT_EQ(argmin(transpose(x), 0).to_vector<int64_t>(), least);
      }
    }
  };
  check(0.0f);
  check(0.0);
}

TEST(ArgMax, Errors) {
  expect_error([] { argmax(Tensor{1.f}, 1); }, Code::invalid_argument, "[ArgMax] axis 1 is out of range");
  expect_error([] { argmax(Tensor::empty(DType::float32, {2, 0}), 1); }, Code::invalid_argument, "is empty");
  EXPECT_EQ(argmax(Tensor::empty(DType::float32, {2, 0}), 0).shape(), Shape{0});
  expect_error([] { argmax(Tensor{1.f}, 0, DType::float32); }, Code::invalid_argument, "output_type");
  expect_error([] { argmin(Tensor("a")); }, Code::invalid_argument, "cannot be string");
}

TEST(Reduce, MaxSharesTheGradientAmongTies) {
  GradientTape tape;
  const Tensor x{{1.f, 4.f, 4.f}, {2.f, 2.f, 2.f}};
  tape.watch(x);
  const Tensor dx = tape.gradient(reduce_max(x, 1) * Tensor{1.f, 3.f}, x);
  expect_values<float>(dx, {2, 3}, {0, 0.5f, 0.5f, 1, 1, 1});
}

TEST(Reduce, ProdHasAGradientWithZeros) {
  auto gradient = [](const Tensor& x, const Axes& axes) {
    GradientTape tape;
    tape.watch(x);
    return Tensor(tape.gradient(reduce_prod(x, axes), x));
  };
  expect_values<float>(gradient(Tensor{2.f, 0.f, 5.f}, 0), {3}, {0, 10, 0});
  expect_values<float>(gradient(Tensor{2.f, 0.f, 0.f}, 0), {3}, {0, 0, 0});
  expect_values<float>(gradient(Tensor{{2.f, 3.f}, {0.f, 5.f}}, {0, 1}), {2, 2}, {0, 0, 30, 0});
  expect_values<float>(gradient(Tensor{{2.f, 3.f}, {4.f, 5.f}}, {1, 0}), {2, 2}, {60, 40, 30, 24});
  expect_values<float>(gradient(Tensor{{2.f, 3.f}, {4.f, 5.f}}, 0), {2, 2}, {4, 5, 2, 3});
}

TEST(Reduce, SecondDerivativeOfProdAtZero) {
  const Tensor x{0.f, 3.f, 5.f};
  GradientTape outer;
  outer.watch(x);
  Tensor dx;
  {
    GradientTape inner;
    inner.watch(x);
    dx = inner.gradient(reduce_prod(x), x);
  }
  expect_values<float>(outer.jacobian(dx, x), {3, 3}, {0, 5, 3, 5, 0, 0, 3, 0, 0});
}

TEST(Reduce, MeanOfManyHalvesHasAGradient) {
  const Tensor x = cast(fill({100000}, 1.f), float16);
  GradientTape tape;
  tape.watch(x);
  const Tensor dx = tape.gradient(reduce_mean(x), x);
  EXPECT_NEAR(static_cast<float>(dx.host<Half>()[0]), 1e-5f, 1e-6f);
}

// Every running result by its own loop over the elements that it covers.
template <class T, class F>
std::vector<T> naive_scan(const Tensor& x, int axis, bool exclusive, bool reverse, T start, F fold) {
  const Shape& s = x.shape();
  const auto v = x.to_vector<T>();
  int64_t inner = 1;
  for (int i = axis + 1; i < s.rank(); ++i) inner *= s[i];
  const int64_t n = s[axis];
  using A = std::conditional_t<is_half_type<T>, float, T>;
  std::vector<T> y;
  for (int64_t k = 0; k < static_cast<int64_t>(v.size()); ++k) {
    const int64_t at = k / inner % n;
    A result = static_cast<A>(start);
    for (int64_t j = 0; j < n; ++j) {
      const bool covered = reverse ? (exclusive ? j > at : j >= at) : (exclusive ? j < at : j <= at);
      if (covered) result = fold(result, static_cast<A>(v[static_cast<size_t>(k + (j - at) * inner)]));
    }
    y.push_back(static_cast<T>(result));
  }
  return y;
}

TEST(Cumulative, MatchesNaiveLoopsForEveryDtype) {
  numbers.for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const Shape shape{3, 4, 2};
    const Tensor x = values<T>(shape, 11);
    for (int axis : {0, 1, 2}) {
      for (bool exclusive : {false, true}) {
        for (bool reverse : {false, true}) {
          expect_values<T>(cumsum(x, axis - 3, exclusive, reverse), shape,
                           naive_scan<T>(x, axis, exclusive, reverse, T(0),
                                         [](auto a, auto b) { return static_cast<decltype(a)>(a + b); }));
          expect_values<T>(math::cumprod(x, axis, exclusive, reverse), shape,
                           naive_scan<T>(x, axis, exclusive, reverse, T(1),
                                         [](auto a, auto b) { return static_cast<decltype(a)>(a * b); }));
        }
      }
    }
  });
}

TEST(Cumulative, LogSumExp) {
  const Tensor x{1.f, 2.f, -3.f};
  const double e1 = std::exp(1);
  const double e2 = std::exp(2);
  expect_values<float>(math::cumulative_logsumexp(x), {3},
                       {1.f, float(std::log(e1 + e2)), float(std::log(e1 + e2 + std::exp(-3)))});
  const auto shifted = math::cumulative_logsumexp(x, 0, true).to_vector<float>();
  EXPECT_EQ(shifted[0], -std::numeric_limits<float>::infinity());
  EXPECT_FLOAT_EQ(shifted[1], 1.f);
  const float inf = std::numeric_limits<float>::infinity();
  expect_values<float>(math::cumulative_logsumexp(Tensor{-inf, 0.f, inf}), {3}, {-inf, 0.f, inf});
}

TEST(Cumulative, EmptyAndErrors) {
  EXPECT_EQ(cumsum(Tensor::empty(DType::float32, {0, 2}), 0).shape(), (Shape{0, 2}));
  EXPECT_EQ(cumsum(Tensor::empty(DType::float32, {2, 0}), 0).shape(), (Shape{2, 0}));
  expect_error([] { cumsum(Tensor{1.f}, 1); }, Code::invalid_argument, "[Cumsum] axis 1 is out of range");
  expect_error([] { cumsum(Tensor(1.f)); }, Code::invalid_argument, "out of range");
  expect_error([] { math::cumprod(Tensor{true}); }, Code::invalid_argument, "cannot be bool");
}

TEST(Cumulative, CumprodHasAGradientWithZeros) {
  for (bool exclusive : {false, true}) {
    for (bool reverse : {false, true}) {
      const Tensor x = Tensor::of<double>({2, 0, 3, 0, 5});
      const Tensor w = Tensor::of<double>({1, 10, 100, 1000, 10000});
      GradientTape tape;
      tape.watch(x);
      const Tensor dx = tape.gradient(math::cumprod(x, 0, exclusive, reverse) * w, x);
      for (size_t i = 0; i < 5; ++i) {
        auto loss = [&](double d) {
          auto v = x.to_vector<double>();
          v[i] += d;
          return reduce_sum(math::cumprod(Tensor::of<double>(v), 0, exclusive, reverse) * w).item<double>();
        };
        EXPECT_NEAR(dx.to_vector<double>()[i], (loss(1e-5) - loss(-1e-5)) / 2e-5, 1e-3) << i;
      }
    }
  }
}

TEST(Cumulative, SameBitsWithOneAndTwoThreads) {
  for (const Shape& shape : {Shape{1000, 1000}, Shape{1000003}}) {
    const Tensor x = noise(shape);
    expect_same_bits([&] { return cumsum(x, 0); });
    expect_same_bits([&] { return cumsum(x, -1, true, true); });
  }
}

}  // namespace
}  // namespace runnel
