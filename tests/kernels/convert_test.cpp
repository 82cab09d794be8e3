#include "runnel/kernels/cpu/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace runnel::cpu {
namespace {

// The value of a small binary float with the given field widths, from the definition.
double decode(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  const int e = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const double m = bits & ((1u << mantissa_bits) - 1);
  if (e == (1 << exponent_bits) - 1) return m == 0 ? sign * INFINITY : NAN;
  if (e == 0) return sign * std::ldexp(m, 1 - bias - mantissa_bits);
  return sign * std::ldexp(m + std::ldexp(1.0, mantissa_bits), e - bias - mantissa_bits);
}

template <class Small>
void check(int exponent_bits, int mantissa_bits) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(65536);
  convert_block(reinterpret_cast<const Small*>(all.data()), wide.data(), 65536);
  for (int i = 0; i < 65536; ++i) {
    const double want = decode(i, exponent_bits, mantissa_bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(wide[i], want) << i;
      ASSERT_EQ(std::signbit(wide[i]), std::signbit(want)) << i;
    }
  }
  // Back: exact values return; halfway points and their neighbours round to nearest even.
  std::vector<uint16_t> back(65536 + 3);
  convert_block(wide.data(), reinterpret_cast<Small*>(back.data()), 65535);  // odd length: a tail too
  for (int i = 0; i < 65535; ++i) {
    if (std::isnan(wide[i])) continue;
    ASSERT_EQ(back[i], all[i]) << i;
  }
  const int positive = ((1 << exponent_bits) - 1) << mantissa_bits;  // infinity's bits
  for (int i = 0; i + 1 < positive; ++i) {
    const float lo = wide[i], hi = wide[i + 1];
    const float mid = static_cast<float>((static_cast<double>(lo) + hi) / 2);
    const float in[4] = {mid, std::nextafter(mid, 0.0f), std::nextafter(mid, INFINITY), -mid};
    uint16_t out[4];
    convert_block(in, reinterpret_cast<Small*>(out), 4);
    const int even = i % 2 == 0 ? i : i + 1;
    ASSERT_EQ(out[0], even) << i;
    ASSERT_EQ(out[1], i) << i;
    ASSERT_EQ(out[2], i + 1) << i;
    ASSERT_EQ(out[3], even | 0x8000) << i;
  }
  const float special[3] = {INFINITY, -INFINITY, NAN};
  uint16_t out[3];
  convert_block(special, reinterpret_cast<Small*>(out), 3);
  EXPECT_EQ(out[0], positive);
  EXPECT_EQ(out[1], positive | 0x8000);
  EXPECT_TRUE(std::isnan(decode(out[2], exponent_bits, mantissa_bits)));
}

TEST(Convert, Float16) { check<Half>(5, 10); }
TEST(Convert, Bfloat16) { check<BFloat16>(8, 7); }

}  // namespace
}  // namespace runnel::cpu
