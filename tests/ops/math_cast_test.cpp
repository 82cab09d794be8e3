// Conversions between every pair of dtypes, and choosing between tensors.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

template <class T>
constexpr bool is_complex_type = is_complex(dtype_of<T>);

template <class T>
T make(double v) {
  if constexpr (HalfFloat<T>) {
    return T(static_cast<float>(v));
  } else {
    return static_cast<T>(v);
  }
}

// What every dtype holds: small whole numbers.
template <class T>
std::vector<T> small_values() {
  std::vector<T> v{make<T>(0), make<T>(1)};
  if constexpr (!std::is_same_v<T, bool>) {
    v.insert(v.end(), {make<T>(2), make<T>(77), make<T>(100)});
    if constexpr (!std::is_unsigned_v<T>) v.insert(v.end(), {make<T>(-1), make<T>(-100)});
  }
  return v;
}

template <class From>
long double as_number(From v) {
  if constexpr (is_complex_type<From>) {
    return v.real();
  } else if constexpr (HalfFloat<From>) {
    return static_cast<float>(v);
  } else {
    return static_cast<long double>(v);
  }
}

TEST(MathCast, EveryPairOfDtypes) {
  plain_types.for_each([]<class From>() {
    const std::vector<From> from = small_values<From>();
    const Tensor x = Tensor::of<From>(from);
    plain_types.for_each([&]<class To>() {
      SCOPED_TRACE(std::string(dtype_name(dtype_of<From>)) + " to " + dtype_name(dtype_of<To>));
      const Tensor y = cast(x, dtype_of<To>);
      ASSERT_EQ(y.dtype(), dtype_of<To>);
      const auto to = y.to_vector<To>();
      for (size_t i = 0; i < from.size(); ++i) {
        const long double v = as_number(from[i]);
        if constexpr (std::is_same_v<To, bool>) {
          EXPECT_EQ(to[i], v != 0);
        } else if constexpr (std::is_unsigned_v<To>) {
          EXPECT_EQ(to[i], static_cast<To>(static_cast<int64_t>(v)));  // negative numbers wrap around
        } else {
          EXPECT_EQ(as_number<To>(to[i]), v);
        }
      }
    });
  });
}

TEST(MathCast, FractionsAreCutOff) {
  const Tensor x{1.9f, -1.9f, 0.5f, -0.5f, 254.99f};
  EXPECT_EQ(cast(x, int32).to_vector<int32_t>(), (std::vector<int32_t>{1, -1, 0, 0, 254}));
  EXPECT_EQ(cast(x, int64).to_vector<int64_t>(), (std::vector<int64_t>{1, -1, 0, 0, 254}));
  EXPECT_EQ(cast(x, uint8).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 255, 0, 0, 254}));
  EXPECT_EQ(cast(cast(x, float16), int16).to_vector<int16_t>(), (std::vector<int16_t>{1, -1, 0, 0, 255}));
}

TEST(MathCast, ValuesThatDoNotFit) {
  const Tensor x{INFINITY, -INFINITY, NAN, 1e20f, -1e20f};
  const int32_t low32 = std::numeric_limits<int32_t>::min();
  const int64_t low64 = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(cast(x, int32).to_vector<int32_t>(), std::vector<int32_t>(5, low32));
  EXPECT_EQ(cast(x, int64).to_vector<int64_t>(), std::vector<int64_t>(5, low64));
  EXPECT_EQ(cast(Tensor{300.f, -1.f}, uint8).to_vector<uint8_t>(), (std::vector<uint8_t>{44, 255}));
  EXPECT_EQ(cast(Tensor{3e9f, 4e9f}, uint32).to_vector<uint32_t>(), (std::vector<uint32_t>{3000000000u, 4000000000u}));
  EXPECT_EQ(cast(Tensor::of<double>({0x1p63, 0x1.8p63}), uint64).to_vector<uint64_t>(),
            (std::vector<uint64_t>{uint64_t{1} << 63, uint64_t{3} << 62}));
  EXPECT_EQ(cast(Tensor{300, -129}, int8).to_vector<int8_t>(), (std::vector<int8_t>{44, 127}));
  const auto halves = cast(Tensor{1e6f, 65519.f, 1e-8f}, float16).to_vector<Half>();
  EXPECT_EQ(static_cast<float>(halves[0]), INFINITY);
  EXPECT_EQ(static_cast<float>(halves[1]), 65504);
  EXPECT_EQ(static_cast<float>(halves[2]), 0);
  EXPECT_EQ(cast(Tensor::of<double>({1e300}), float32).item<float>(), INFINITY);
}

TEST(MathCast, LargeIntegersRoundToNearest) {
  const Tensor x = Tensor::of<int64_t>({(int64_t{1} << 53) + 1, (int64_t{1} << 24) + 1, -(int64_t{1} << 62)});
  EXPECT_EQ(cast(x, float64).to_vector<double>(), (std::vector<double>{0x1p53, 16777217, -0x1p62}));
  EXPECT_EQ(cast(x, float32).to_vector<float>(), (std::vector<float>{0x1p53f, 0x1p24f, -0x1p62f}));
  EXPECT_EQ(cast(Tensor::of<uint64_t>({~uint64_t{0}}), float32).item<float>(), 0x1p64f);
}

TEST(MathCast, TruncateCutsTheMantissaOff) {
  const float x = std::bit_cast<float>(0x3f80ffffu);  // rounds up to bfloat16, is cut down to 1
  const auto with = [&](bool truncate) {
    return call_op("Cast", {Tensor{x}}, {{"DstT", bfloat16}, {"Truncate", truncate}})[0].item<BFloat16>();
  };
  EXPECT_EQ(with(true).bits(), 0x3f80);
  EXPECT_EQ(with(false).bits(), 0x3f81);
}

TEST(MathCast, SameDtypeIsTheTensorItself) {
  const Tensor x{1.f, 2.f};
  EXPECT_EQ(cast(x, float32).impl().get(), x.impl().get());
  EXPECT_EQ(call_op("Cast", {x}, {{"DstT", float32}})[0].raw(), x.raw());
}

TEST(MathCast, LiteralsStringsAndErrors) {
  EXPECT_EQ(cast(3, float64).item<double>(), 3.0);
  EXPECT_EQ(cast(2.5, int32).item<int32_t>(), 2);
  expect_error([] { cast(Tensor{"1"}, float32); }, Code::invalid_argument, "[Cast] x cannot be string");
  expect_error([] { cast(Tensor{1.f}, DType::string); }, Code::invalid_argument, "cannot cast float32 to string");
}

TEST(MathCast, GradientGoesBackInTheDtypeOfTheInput) {
  const Tensor x{1.f, 2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = cast(x, float64) * 3.0;
  const Tensor n = cast(cast(x, int32), float32);
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_FALSE(tape.gradient(n, x).defined());
}

TEST(MathCast, SaturateCast) {
  EXPECT_EQ(saturate_cast(Tensor{-5, 300, 7}, uint8).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 255, 7}));
  EXPECT_EQ(saturate_cast(Tensor{-5.5f, 300.f, INFINITY, -INFINITY}, int8).to_vector<int8_t>(),
            (std::vector<int8_t>{-5, 127, 127, -128}));
  EXPECT_EQ(saturate_cast(Tensor{1e20f, -1e20f}, int32).to_vector<int32_t>(),
            (std::vector<int32_t>{2147483520, std::numeric_limits<int32_t>::min()}));
  EXPECT_EQ(saturate_cast(Tensor::of<double>({1e20}), int32).item<int32_t>(), 2147483647);
  EXPECT_EQ(saturate_cast(Tensor::of<double>({1e300}), float32).item<float>(), std::numeric_limits<float>::max());
  EXPECT_EQ(saturate_cast(Tensor::of<uint64_t>({~uint64_t{0}}), int64).item<int64_t>(),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(saturate_cast(Tensor::of<int64_t>({-1}), uint64).item<uint64_t>(), 0u);
}

TEST(MathCast, Bitcast) {
  EXPECT_EQ(bitcast(Tensor{1.f}, int32).item<int32_t>(), 0x3f800000);
  const Tensor bytes = bitcast(Tensor{0x01020304, 5}, uint8);
  EXPECT_EQ(bytes.shape(), (Shape{2, 4}));
  EXPECT_EQ(bytes.to_vector<uint8_t>(), (std::vector<uint8_t>{4, 3, 2, 1, 5, 0, 0, 0}));
  EXPECT_EQ(bitcast(bytes, int32).to_vector<int32_t>(), (std::vector<int32_t>{0x01020304, 5}));
  expect_error([] { bitcast(Tensor{1.f, 2.f, 3.f}, float64); }, Code::invalid_argument, "last dimension must be 2");
}

TEST(MathSelect, EveryDtypeBroadcasts) {
  const Tensor condition{{true}, {false}};
  plain_types.for_each([&]<class T>() {
    const std::vector<T> a{make<T>(1), make<T>(0), make<T>(1)}, b{make<T>(0)};
    const Tensor y = where(condition, Tensor::of<T>(a), Tensor::of<T>(b));
    EXPECT_EQ(y.shape(), (Shape{2, 3}));
    const auto got = y.to_vector<T>();
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(as_number<T>(got[i]), as_number<T>(i < 3 ? a[i] : b[0])) << i;
  });
  const Tensor s = where(condition, Tensor{"a", "b"}, "c");
  EXPECT_EQ(s.to_vector<std::string>(), (std::vector<std::string>{"a", "b", "c", "c"}));
}

TEST(MathSelect, LiteralsTakeTheDtypeOfTheTensor) {
  const Tensor x = Tensor::of<double>({1.5, -2.5});
  EXPECT_EQ(where(x > 0, x, 0).to_vector<double>(), (std::vector<double>{1.5, 0}));
  EXPECT_EQ(where(x > 0, 1, 0).dtype(), int32);
}

TEST(MathSelect, NanDoesNotLeakThroughTheGradient) {
  const Tensor x{4.f, -4.f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = where(x > 0, sqrt(where(x > 0, x, 1)), 0);
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<float>(), (std::vector<float>{0.25f, 0}));
}

TEST(MathSelect, OlderSelectChoosesRows) {
  const Tensor x{{1, 2}, {3, 4}}, y{{5, 6}, {7, 8}};
  EXPECT_EQ(call_op("Select", {Tensor{true, false}, x, y})[0].to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 7, 8}));
  EXPECT_EQ(call_op("Select", {Tensor(false), x, y})[0].to_vector<int32_t>(), (std::vector<int32_t>{5, 6, 7, 8}));
  expect_error([&] { call_op("Select", {Tensor{true, false, true}, x, y}); }, Code::invalid_argument, "[Select]");
}

TEST(MathSelect, WhereGivesIndices) {
  const Tensor x{{{1, 0}, {0, 2}}, {{0, 0}, {3, 0}}};
  const Tensor at = where(x);
  EXPECT_EQ(at.shape(), (Shape{3, 3}));
  EXPECT_EQ(at.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(where(Tensor(true)).shape(), (Shape{1, 0}));
  EXPECT_EQ(where(Tensor(false)).shape(), (Shape{0, 0}));
  EXPECT_EQ(where(Tensor::empty(bool_, Shape{0, 2})).shape(), (Shape{0, 2}));
  EXPECT_EQ(where(Tensor{NAN, -0.f, 1.f}).to_vector<int64_t>(), (std::vector<int64_t>{0, 2}));
  // Over several chunks.
  std::vector<int32_t> many(200'001, 0);
  std::vector<int64_t> expected;
  for (size_t i = 0; i < many.size(); i += 313) {
    many[i] = 1;
    expected.push_back(static_cast<int64_t>(i));
  }
  EXPECT_EQ(where(Tensor::of<int32_t>(many)).to_vector<int64_t>(), expected);
}

}  // namespace
}  // namespace runnel
