#include "runnel/base/decimal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>

namespace runnel {
namespace {

TEST(Decimal, ShortestAsPythonRepr) {
  EXPECT_EQ(shortest(1.0), "1.0");
  EXPECT_EQ(shortest(-0.0), "-0.0");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1e-4), "0.0001");
  EXPECT_EQ(shortest(1e-5), "1e-05");
  EXPECT_EQ(shortest(1.5e-5), "1.5e-05");
  EXPECT_EQ(shortest(1e15), "1000000000000000.0");
  EXPECT_EQ(shortest(1e16), "1e+16");
  EXPECT_EQ(shortest(1.5e300), "1.5e+300");
  EXPECT_EQ(shortest(5e-324), "5e-324");
  EXPECT_EQ(shortest(123456.789), "123456.789");
  EXPECT_EQ(shortest(HUGE_VAL), "inf");
  EXPECT_EQ(shortest(-HUGE_VAL), "-inf");
  EXPECT_EQ(shortest(std::nan("")), "nan");
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(1e-4f), "1e-04");  // the float lies below 1e-4
  EXPECT_EQ(shortest(16777216.0f), "16777216.0");
  EXPECT_EQ(shortest(1.0f / 3), "0.33333334");
}

TEST(Decimal, ShortestReadsBackAndIsShort) {
  std::mt19937_64 generator(3);
  for (int i = 0; i < 100'000; ++i) {
    const double value = std::bit_cast<double>(generator());
    if (!std::isfinite(value)) {
      continue;
    }
    ASSERT_EQ(std::strtod(shortest(value).c_str(), nullptr), value);
    const Decimal decimal = shortest_decimal(value);
    char text[40];
    std::snprintf(text, sizeof text, "%.*e", static_cast<int>(decimal.digits.size()) - 2, value);
    ASSERT_TRUE(decimal.digits.size() < 2 || std::strtod(text, nullptr) != value) << text;
  }
}

TEST(Decimal, RoundedAsPrintf) {
  std::mt19937_64 generator(5);
  for (int i = 0; i < 20'000; ++i) {
    const double value = i < 10'000 ? std::bit_cast<double>(generator()) : std::ldexp(generator() >> 50, -8);
    if (!std::isfinite(value)) {
      continue;
    }
    const int places = static_cast<int>(generator() % 9) + 1;
    char text[500];
    std::snprintf(text, sizeof text, "%.*e", places, value);
    ASSERT_EQ(scientific_text(rounded_decimal(value, places + 1)), text);
    if (std::fabs(value) >= 1) {
      std::snprintf(text, sizeof text, "%.*f", places, value);
      ASSERT_EQ(positional_text(fixed_decimal(value, places)), text);
    }
  }
  EXPECT_EQ(positional_text(fixed_decimal(-1e-9, 3)), "-0.");
  EXPECT_EQ(positional_text(fixed_decimal(2.5, 0)), "2.");
}

TEST(Decimal, GeneralTextAsTensorFlowPrint) {
  EXPECT_EQ(general_text(1.0f), "1");
  EXPECT_EQ(general_text(0.1f), "0.1");
  EXPECT_EQ(general_text(1.0f / 3), "0.333333343");
  EXPECT_EQ(general_text(1e-5f), "1e-05");
  EXPECT_EQ(general_text(16777216.0f), "16777216");
  EXPECT_EQ(general_text(1.0 / 3), "0.33333333333333331");
  EXPECT_EQ(general_text(0.1), "0.1");
  EXPECT_EQ(general_text(-HUGE_VALF), "-inf");
  EXPECT_EQ(general_text(std::nan("")), "nan");
}

}  // namespace
}  // namespace runnel
