// Functions of two operands against element-by-element references, over dtypes, shapes and odd values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runnel/base/flush_denormals.h"
#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

template <class T>
std::vector<T> sample_values() {
  std::vector<T> v;
  if constexpr (std::is_integral_v<T>) {
    v = {T(1), T(2), T(3), T(7), T(100), std::numeric_limits<T>::max()};
    if constexpr (std::is_signed_v<T>) v.insert(v.end(), {T(-1), T(-2), T(-7), std::numeric_limits<T>::min()});
  } else {
    for (double x : {1.0, -1.0, 0.5, -2.5, 7.0, 3.25, 1e-3, -40.0}) v.push_back(static_cast<T>(x));
    v.push_back(std::numeric_limits<T>::infinity());
    v.push_back(-std::numeric_limits<T>::infinity());
    v.push_back(std::numeric_limits<T>::quiet_NaN());
    v.push_back(std::numeric_limits<T>::denorm_min());
  }
  return v;
}

template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

// Loops over float32 count denormals as 0.
template <class T>
T as_loops_see(T x) {
  return std::is_same_v<T, float> && std::abs(x) < std::numeric_limits<T>::min() ? T(0) : x;
}

// Every pair of the sample values, as [n, 1] against [n]. Results may be `steps` floats away.
template <class T, class R, class F>
void check_pairs(const char* name, Tensor (*function)(const Operand&, const Operand&), F reference, int steps = 0) {
  const std::vector<T> v = sample_values<T>();
  const auto n = static_cast<int64_t>(v.size());
  const Tensor z = function(Tensor::of<T>(v, Shape{n, 1}), Tensor::of<T>(v));
  ASSERT_EQ(z.shape(), (Shape{n, n})) << name;
  const auto got = z.to_vector<R>();
  const FlushDenormals as_kernels_do;
  for (size_t i = 0; i < v.size(); ++i) {
    for (size_t j = 0; j < v.size(); ++j) {
      const R expected = reference(v[i], v[j]);
      const R value = got[i * v.size() + j];
      R from = expected, to = expected;
      if constexpr (std::is_floating_point_v<R>) {
        for (int k = 0; k < steps; ++k) {
          from = std::nextafter(from, -std::numeric_limits<R>::infinity());
          to = std::nextafter(to, std::numeric_limits<R>::infinity());
        }
      }
      EXPECT_TRUE(same<R>(value, expected) || (value >= from && value <= to))
          << name << '(' << +v[i] << ", " << +v[j] << ") of " << dtype_name(dtype_of<T>) << " is " << +value << ", not "
          << +expected;
    }
  }
}

// Exact integers wide enough for every type, cut down to T as it wraps around.
template <class T, class F>
void check_integers(const char* name, Tensor (*function)(const Operand&, const Operand&), F wide) {
  check_pairs<T, T>(name, function, [&](T x, T y) { return static_cast<T>(wide(__int128(x), __int128(y))); });
}

__int128 floor_quotient(__int128 x, __int128 y) {
  const __int128 q = x / y;
  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

TEST(MathBinary, Integers) {
  integers.for_each([]<class T>() {
    using W = __int128;
    using U = unsigned __int128;
    check_integers<T>("add", add, [](W x, W y) { return x + y; });
    check_integers<T>("subtract", subtract, [](W x, W y) { return x - y; });
    check_integers<T>("multiply", multiply, [](W x, W y) { return static_cast<W>(U(x) * U(y)); });
    check_integers<T>("floordiv", floordiv, [](W x, W y) { return floor_quotient(x, y); });
    check_integers<T>("floormod", floormod, [](W x, W y) { return x - y * floor_quotient(x, y); });
    check_integers<T>("truncatediv", truncatediv, [](W x, W y) { return x / y; });
    check_integers<T>("maximum", maximum, [](W x, W y) { return x > y ? x : y; });
    check_integers<T>("minimum", minimum, [](W x, W y) { return x < y ? x : y; });
    check_pairs<T, bool>("less", less, [](T x, T y) { return x < y; });
    check_pairs<T, bool>("less_equal", less_equal, [](T x, T y) { return x <= y; });
    check_pairs<T, bool>("greater", greater, [](T x, T y) { return x > y; });
    check_pairs<T, bool>("greater_equal", greater_equal, [](T x, T y) { return x >= y; });
    check_pairs<T, bool>("equal", equal, [](T x, T y) { return x == y; });
    check_pairs<T, bool>("not_equal", not_equal, [](T x, T y) { return x != y; });
    check_integers<T>("bitwise_and", bitwise::bitwise_and, [](W x, W y) { return x & y; });
    check_integers<T>("bitwise_or", bitwise::bitwise_or, [](W x, W y) { return x | y; });
    check_integers<T>("bitwise_xor", bitwise::bitwise_xor, [](W x, W y) { return x ^ y; });
    const auto count = [](W y) { return static_cast<int>(y < 0 ? 0 : std::min<W>(y, sizeof(T) * 8 - 1)); };
    check_integers<T>("left_shift", bitwise::left_shift, [&](W x, W y) { return x * (W(1) << count(y)); });
    check_integers<T>("right_shift", bitwise::right_shift, [&](W x, W y) { return x >> count(y); });
  });
  index_types.for_each([]<class T>() {
    check_integers<T>("truncatemod", truncatemod, [](__int128 x, __int128 y) { return x % y; });
    check_integers<T>("squared_difference", squared_difference, [](__int128 x, __int128 y) {
      const auto d = static_cast<unsigned __int128>(x - y);
      return static_cast<__int128>(d * d);
    });
  });
}

template <class T>
T max_of(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
  return std::max(x, y);
}
template <class T>
T min_of(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
  return std::min(x, y);
}

// Angles of float32 are computed in vectors and may be off by one unit in the last place.
TEST(MathBinary, Atan2) {
  Types<float, double>::for_each([]<class T>() {
    const std::vector<T> v = sample_values<T>();
    const auto n = static_cast<int64_t>(v.size());
    const auto got = atan2(Tensor::of<T>(v, Shape{n, 1}), Tensor::of<T>(v)).template to_vector<T>();
    const auto flushed = [](T x) { return std::fpclassify(x) == FP_SUBNORMAL ? T(0) : x; };
    for (size_t i = 0; i < v.size(); ++i) {
      for (size_t j = 0; j < v.size(); ++j) {
        const T angle = got[i * v.size() + j], expected = std::atan2(flushed(v[i]), flushed(v[j]));
        EXPECT_TRUE(same(angle, expected) || angle == std::nextafter(expected, T(0)) ||
                    angle == std::nextafter(expected, T(4) * expected))
            << "atan2(" << v[i] << ", " << v[j] << ") is " << angle << ", not " << expected;
      }
    }
  });
}

TEST(MathBinary, Floating) {
  Types<float, double>::for_each([]<class T>() {
    check_pairs<T, T>("add", add, [](T x, T y) { return x + y; });
    check_pairs<T, T>("subtract", subtract, [](T x, T y) { return x - y; });
    check_pairs<T, T>("multiply", multiply, [](T x, T y) { return x * y; });
    check_pairs<T, T>("divide", divide, [](T x, T y) { return x / y; });
    check_pairs<T, T>("floordiv", floordiv, [](T x, T y) { return std::floor(x / y); });
    check_pairs<T, T>("truncatediv", truncatediv, [](T x, T y) { return std::trunc(x / y); });
    check_pairs<T, T>("truncatemod", truncatemod, [](T x, T y) { return std::fmod(x, y); });
    check_pairs<T, T>("floormod", floormod, [](T x, T y) {
      const T m = std::fmod(x, y);
      return m != 0 && (m < 0) != (y < 0) ? m + y : m;
    });
    check_pairs<T, T>("maximum", maximum, max_of<T>);
    check_pairs<T, T>("minimum", minimum, min_of<T>);
    check_pairs<T, T>(
        "pow", pow, [](T x, T y) { return std::pow(x, as_loops_see(y)); }, 2);
    check_pairs<T, T>("squared_difference", squared_difference, [](T x, T y) { return (x - y) * (x - y); });
    check_pairs<T, T>(
        "xlogy", xlogy, [](T x, T y) { return x == 0 ? T(0) : x * std::log(as_loops_see(y)); }, 2);
    check_pairs<T, T>(
        "xlog1py", xlog1py, [](T x, T y) { return x == 0 ? T(0) : x * std::log1p(y); }, 2);
    check_pairs<T, T>("xdivy", xdivy, [](T x, T y) { return x == 0 ? T(0) : x / y; });
    check_pairs<T, T>("divide_no_nan", divide_no_nan, [](T x, T y) { return y == 0 ? T(0) : x / y; });
    check_pairs<T, T>("nextafter", nextafter, [](T x, T y) { return std::nextafter(x, y); });
    check_pairs<T, bool>("less", less, [](T x, T y) { return x < y; });
    check_pairs<T, bool>("less_equal", less_equal, [](T x, T y) { return x <= y; });
    check_pairs<T, bool>("greater", greater, [](T x, T y) { return x > y; });
    check_pairs<T, bool>("greater_equal", greater_equal, [](T x, T y) { return x >= y; });
    check_pairs<T, bool>("equal", equal, [](T x, T y) { return x == y; });
    check_pairs<T, bool>("not_equal", not_equal, [](T x, T y) { return x != y; });
  });
}

TEST(MathBinary, HalvesRoundOnce) {
  Types<Half, BFloat16>::for_each([]<class T>() {
    std::vector<T> a, b;
    for (int i = -20; i < 20; ++i) {
      a.push_back(T(static_cast<float>(i) * 0.37f));
      b.push_back(T(static_cast<float>(i * i) * 0.11f + 0.5f));
    }
    const auto check = [&](const Tensor& got, auto reference) {
      const auto values = got.to_vector<T>();
      for (size_t i = 0; i < a.size(); ++i) {
        const T expected(reference(static_cast<float>(a[i]), static_cast<float>(b[i])));
        EXPECT_TRUE(same<float>(values[i], expected)) << i << ": " << float(values[i]) << " and " << float(expected);
      }
    };
    const Tensor x = Tensor::of<T>(a), y = Tensor::of<T>(b);
    check(x + y, [](float p, float q) { return p + q; });
    check(x * y, [](float p, float q) { return p * q; });
    check(x / y, [](float p, float q) { return p / q; });
    check(maximum(x, y), [](float p, float q) { return std::max(p, q); });
    check(pow(y, x), [](float p, float q) { return std::pow(q, p); });
    check(squared_difference(x, y), [](float p, float q) { return (p - q) * (p - q); });
    EXPECT_EQ((x < y).to_vector<bool>()[0], static_cast<float>(a[0]) < static_cast<float>(b[0]));
  });
}

TEST(MathBinary, TrueDivisionOfIntegers) {
  const auto check = []<class T>(T) {
    const Tensor z = Tensor::of<T>(std::vector<T>{7, 1, 0}) / Tensor::of<T>(std::vector<T>{2, 0, 0});
    EXPECT_EQ(z.dtype(), sizeof(T) <= 2 ? float32 : float64) << dtype_name(dtype_of<T>);
    const auto values = sizeof(T) <= 2 ? cast(z, float64).to_vector<double>() : z.to_vector<double>();
    EXPECT_EQ(values[0], 3.5);
    EXPECT_EQ(values[1], INFINITY);
    EXPECT_TRUE(std::isnan(values[2]));
  };
  integers.for_each([&]<class T>() { check(T()); });
  EXPECT_EQ((Tensor{7, 9} / 2).to_vector<double>(), (std::vector<double>{3.5, 4.5}));
  EXPECT_EQ((7 / Tensor{2}).to_vector<double>(), (std::vector<double>{3.5}));
  EXPECT_EQ(truediv(7, 2).item<double>(), 3.5);
}

TEST(MathBinary, IntegerDivisionByZeroIsAnError) {
  using Function = Tensor (*)(const Operand&, const Operand&);
  for (Function f :
       {Function(floordiv), Function(floormod), Function(truncatediv), Function(truncatemod), Function(mod)}) {
    expect_error([&] { f(Tensor{1, 2}, Tensor{3, 0}); }, Code::invalid_argument, "integer division by zero");
    EXPECT_EQ(f(Tensor::empty(int32, Shape{0, 1}), Tensor{0}).num_elements(), 0);
  }
  expect_error([] { pow(Tensor{2}, Tensor{-1}); }, Code::invalid_argument, "negative integer powers");
  EXPECT_EQ((Tensor{1} % 1).item<int32_t>(), 0);
}

TEST(MathBinary, Powers) {
  EXPECT_EQ(pow(Tensor{2, -3, 0, 7}, Tensor{10, 3, 0, 1}).to_vector<int32_t>(),
            (std::vector<int32_t>{1024, -27, 1, 7}));
  EXPECT_EQ(pow(Tensor{3}, 40).item<int32_t>(), static_cast<int32_t>(12157665459056928801ull & 0xffffffff));
  const std::vector<float> x{-3, -0.f, 1.1f, 1e30f, INFINITY, NAN, 1e-30f};
  const auto squares = pow(Tensor::of<float>(x), 2).to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(same(squares[i], std::pow(x[i], 2.f))) << x[i];
}

TEST(MathBinary, ZeroWinsWhereItIsSaidTo) {
  const Tensor zero{0.f, 0.f, 0.f}, odd{INFINITY, NAN, 0.f};
  for (const Tensor& z :
       {xlogy(zero, odd), xlog1py(zero, odd), xdivy(zero, odd), multiply_no_nan(odd, zero), divide_no_nan(odd, zero)}) {
    EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  }
}

TEST(MathBinary, BroadcastsAndEmpties) {
  const Tensor a = Tensor::of<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{2, 1, 3});
  const Tensor b = Tensor::of<float>(std::vector<float>{10, 20}, Shape{2, 1});
  const Tensor z = a - b;
  EXPECT_EQ(z.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{-9, -8, -7, -19, -18, -17, -6, -5, -4, -16, -15, -14}));
  EXPECT_EQ((Tensor::empty(float32, Shape{0, 3}) + Tensor{1.f, 2.f, 3.f}).shape(), (Shape{0, 3}));
  EXPECT_EQ(less(Tensor::empty(int32, Shape{2, 0}), 1).shape(), (Shape{2, 0}));
  expect_error([&] { a + Tensor{1.f, 2.f}; }, Code::invalid_argument, "do not broadcast");
}

TEST(MathBinary, GradientsOfBroadcastOperandsAreSummed) {
  const Tensor x = Tensor::of<double>({1, 2, 3}, Shape{3}), y = Tensor::of<double>({4, 5}, Shape{2, 1});
  GradientTape tape;
  tape.watch(x);
  tape.watch(y);
  const auto g = tape.gradient(x / y, {x, y});
  EXPECT_EQ(g[0].value().shape(), (Shape{3}));
  EXPECT_EQ(g[1].value().shape(), (Shape{2, 1}));
  EXPECT_NEAR(g[0].value().to_vector<double>()[0], 1 / 4. + 1 / 5., 1e-15);
  EXPECT_NEAR(g[1].value().to_vector<double>()[0], -6 / 16., 1e-15);
}

TEST(MathBinary, AddN) {
  EXPECT_EQ(add_n({Tensor{1, 2}, Tensor{3, 4}, Tensor{5, 6}}).to_vector<int32_t>(), (std::vector<int32_t>{9, 12}));
  std::vector<Tensor> many(20, Tensor{0.5f, 1.f});
  EXPECT_EQ(add_n(many).to_vector<float>(), (std::vector<float>{10, 20}));
  expect_error([] { add_n(std::vector<Tensor>{}); }, Code::invalid_argument, "AddN");
  expect_error([] { add_n({Tensor{1}, Tensor{1, 2}}); }, Code::invalid_argument, "all shapes must be the same");
  GradientTape tape;
  const Tensor a{1.f}, b{2.f};
  tape.watch(a);
  tape.watch(b);
  const auto g = tape.gradient(add_n({a, b, a}), {a, b});
  EXPECT_EQ(g[0].value().item<float>(), 2);
  EXPECT_EQ(g[1].value().item<float>(), 1);
}

TEST(MathBinary, ClipByValue) {
  EXPECT_EQ(clip_by_value(Tensor{-5, 0, 5}, -1, 1).to_vector<int32_t>(), (std::vector<int32_t>{-1, 0, 1}));
  EXPECT_TRUE(std::isnan(clip_by_value(Tensor{NAN}, -1, 1).item<float>()));
  EXPECT_EQ(clip_by_value(Tensor{INFINITY}, -1, 1).item<float>(), 1);
  expect_error([] { clip_by_value(Tensor(1.f), Tensor{0.f, 1.f}, 2); }, Code::invalid_argument, "must broadcast");
  // The function broadcasts its bounds; the op does not.
  EXPECT_EQ(clip_by_value(Tensor{{-5.f, 5.f}, {0.f, 7.f}}, Tensor{-1.f, 1.f}, Tensor{{2.f}, {3.f}}).to_vector<float>(),
            (std::vector<float>{-1, 2, 0, 3}));
}

TEST(MathBinary, LogicAndTests) {
  const Tensor p{true, true, false, false}, q{true, false, true, false};
  EXPECT_EQ(logical_and(p, q).to_vector<bool>(), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(logical_or(p, q).to_vector<bool>(), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(logical_xor(p, q).to_vector<bool>(), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(logical_not(p).to_vector<bool>(), (std::vector<bool>{false, false, true, true}));
  expect_error([] { logical_and(Tensor{1}, Tensor{1}); }, Code::invalid_argument, "x must be bool, got int32");
  floating.for_each([]<class T>() {
    const Tensor x = cast(Tensor{1.f, NAN, INFINITY, -INFINITY, -0.f}, dtype_of<T>);
    EXPECT_EQ(is_nan(x).to_vector<bool>(), (std::vector<bool>{false, true, false, false, false}));
    EXPECT_EQ(is_inf(x).to_vector<bool>(), (std::vector<bool>{false, false, true, true, false}));
    EXPECT_EQ(is_finite(x).to_vector<bool>(), (std::vector<bool>{true, false, false, false, true}));
  });
}

TEST(MathBinary, LargeInputsGiveTheSameBitsOnOneAndTwoThreads) {
  std::vector<float> a(300'007);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 1013) * 0.01f + 0.1f;
  const Tensor x = Tensor::of<float>(a), y = x.rows(0, 1);
  const int threads = num_threads();
  const auto all = [&] {
    return std::vector<Tensor>{x * x, x / y, pow(x, x), maximum(y, x), squared_difference(x, y)};
  };
  set_num_threads(1);
  const auto one = all();
  set_num_threads(2);
  const auto two = all();
  set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(std::memcmp(one[i].raw(), two[i].raw(), one[i].num_bytes()), 0) << i;
  }
}

}  // namespace
}  // namespace runnel
