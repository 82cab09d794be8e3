#include "runnel/tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <unordered_set>

namespace runnel {
namespace {

struct Layout {
  int mantissa_bits;
  int bias;
  int max_exponent_field;
};
template <class H>
constexpr Layout layout_of = {};
template <>
constexpr Layout layout_of<Half> = {10, 15, 31};
template <>
constexpr Layout layout_of<BFloat16> = {7, 127, 255};

// What the bits mean, straight from the definition of the format.
template <class H>
double decode(uint16_t bits) {
  constexpr Layout l = layout_of<H>;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int field = (bits & 0x7fff) >> l.mantissa_bits;
  const int mantissa = bits & ((1 << l.mantissa_bits) - 1);
  if (field == l.max_exponent_field) {
    return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  }
  const double fraction = std::ldexp(mantissa, -l.mantissa_bits);
  return field == 0 ? sign * std::ldexp(fraction, 1 - l.bias) : sign * std::ldexp(1 + fraction, field - l.bias);
}

// Rounds to a multiple of the spacing at that magnitude with nearbyint (to nearest even), in double.
template <class H>
double round_reference(float value) {
  constexpr Layout l = layout_of<H>;
  const double x = value;
  if (std::isnan(x) || std::isinf(x) || x == 0) {
    return x;
  }
  int exponent = 0;
  std::frexp(x, &exponent);  // x = m * 2^exponent, m in [0.5, 1)
  exponent = std::max(exponent - 1, 1 - l.bias);
  const double spacing = std::ldexp(1.0, exponent - l.mantissa_bits);
  const double rounded = std::nearbyint(x / spacing) * spacing;
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, -l.mantissa_bits), l.max_exponent_field - 1 - l.bias);
  return std::fabs(rounded) > largest ? std::copysign(HUGE_VAL, x) : rounded;
}

template <class H>
class HalfFloats : public testing::Test {};
using HalfTypes = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(HalfFloats, HalfTypes);

TYPED_TEST(HalfFloats, EveryPatternDecodesAndRoundTrips) {
  const uint16_t quiet = 1 << (layout_of<TypeParam>.mantissa_bits - 1);
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const TypeParam half = TypeParam::from_bits(bits);
    const float value = half;
    const double expected = decode<TypeParam>(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_EQ(TypeParam(value).bits(), bits | quiet) << i;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << i;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
      ASSERT_EQ(TypeParam(value).bits(), bits) << i;
    }
  }
}

TYPED_TEST(HalfFloats, RoundsToNearestEven) {
  std::mt19937 generator(7);
  const auto check = [](float value) {
    const TypeParam half(value);
    const double expected = round_reference<TypeParam>(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(decode<TypeParam>(half.bits())));
    } else {
      ASSERT_EQ(decode<TypeParam>(half.bits()), expected) << value;
      ASSERT_EQ((half.bits() & 0x8000) != 0, std::signbit(value)) << value;
    }
  };
  for (int i = 0; i < 1'000'000; ++i) {
    check(std::bit_cast<float>(static_cast<uint32_t>(generator())));
  }
  // Halfway points and their neighbours, around every representable value.
  for (int i = 0; i < 0x8000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float low = TypeParam::from_bits(bits);
    const float high = TypeParam::from_bits(static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(low)) {
      break;
    }
    const double step = std::ldexp(1.0, -layout_of<TypeParam>.mantissa_bits);
    const double next = std::isinf(high) ? low * (1.0 + step / 2) : high;
    const auto middle = static_cast<float>((static_cast<double>(low) + next) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)}) {
      check(value);
      check(-value);
    }
  }
}

TYPED_TEST(HalfFloats, Limits) {
  using L = std::numeric_limits<TypeParam>;
  EXPECT_EQ(static_cast<float>(TypeParam(1.0f)) + L::epsilon(),
            static_cast<float>(TypeParam::from_bits(static_cast<uint16_t>(TypeParam(1.0f).bits() + 1))));
  EXPECT_EQ(static_cast<double>(L::min()), std::ldexp(1.0, L::min_exponent - 1));
  EXPECT_EQ(static_cast<double>(L::max()), std::ldexp(1.0 - std::ldexp(1.0, -L::digits), L::max_exponent));
  EXPECT_EQ(L::lowest(), -L::max());
  EXPECT_EQ(static_cast<double>(L::denorm_min()), std::ldexp(1.0, L::min_exponent - L::digits));
  EXPECT_TRUE(std::isinf(L::infinity()));
  EXPECT_TRUE(std::isnan(L::quiet_NaN()));
  EXPECT_TRUE(std::isnan(L::signaling_NaN()));
}

TYPED_TEST(HalfFloats, ArithmeticRoundsOnce) {
  const TypeParam one(1.0f);
  const TypeParam three(3.0f);
  static_assert(std::is_same_v<decltype(one + three), TypeParam>);
  static_assert(std::is_same_v<decltype(one + 1.0f), float>);
  static_assert(std::is_same_v<decltype(2 * one), float>);
  static_assert(std::is_same_v<decltype(-one), TypeParam>);
  static_assert(!std::is_convertible_v<float, TypeParam>);
  EXPECT_EQ((one / three).bits(), TypeParam(1.0f / 3.0f).bits());
  EXPECT_EQ(one + three, 4.0f);
  EXPECT_EQ(one - three, -2);
  EXPECT_EQ(three * three, TypeParam(9.0f));
  EXPECT_TRUE(one < three);
  EXPECT_TRUE(std::numeric_limits<TypeParam>::quiet_NaN() != std::numeric_limits<TypeParam>::quiet_NaN());
  TypeParam x(1.0f);
  x += three;
  x *= 2;
  x -= 1.0f;
  x /= TypeParam(2.0f);
  EXPECT_EQ(x, 3.5f);
  EXPECT_EQ((-TypeParam(0.0f)).bits(), 0x8000);
  EXPECT_EQ(-TypeParam(0.0f), TypeParam(0.0f));
}

TYPED_TEST(HalfFloats, Hash) {
  std::unordered_set<TypeParam> set;
  set.insert(TypeParam(0.0f));
  set.insert(TypeParam(-0.0f));
  set.insert(TypeParam(1.0f));
  EXPECT_EQ(set.size(), 2u);
}

TEST(HalfConstexpr, Values) {
  static_assert(Half(1.0f).bits() == 0x3c00);
  static_assert(BFloat16(1.0f).bits() == 0x3f80);
  static_assert(Half(65504.0f).bits() == 0x7bff);
  static_assert(Half(65519.996f).bits() == 0x7bff);
  static_assert(Half(65520.0f).bits() == 0x7c00);
}

}  // namespace
}  // namespace runnel
