#include "runnel/kernels/cpu/remainder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace runnel::cpu {
namespace {

// Pairs of floats: small quotients, quotients that are whole or nearly so, huge ones, and everything special.
void pairs(std::vector<float>& x, std::vector<float>& y) {
  std::mt19937 gen(3);
  const float inf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 3.5f, -7.0f, 1e38f, 1e-38f, 1e-42f, inf, -inf, NAN};
  for (float a : special) {
    for (float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  for (int i = 0; i < 100000; ++i) {
    const auto any = std::bit_cast<float>(static_cast<uint32_t>(gen()));
    const float b = std::ldexp(static_cast<float>(gen() % 16777216 + 1), static_cast<int>(gen() % 60) - 50);
    const float whole = b * static_cast<float>(gen() % 5000);
    const float near[] = {any, whole, std::nextafter(whole, 0.0f), std::nextafter(whole, inf), b * 1e7f, b * 1e10f};
    x.push_back(near[i % 6] * (i % 4 < 2 ? 1.0f : -1.0f));
    y.push_back(b * (i % 8 < 4 ? 1.0f : -1.0f));
  }
}

TEST(Remainder, HasTheBitsOfFmod) {
  std::vector<float> x, y;
  pairs(x, y);
  std::vector<float> truncated(x.size()), floored(x.size());
  vtruncate_mod(x.data(), y.data(), truncated.data(), static_cast<int64_t>(x.size()));
  vfloor_mod(x.data(), y.data(), floored.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const float m = std::fmod(x[i], y[i]);
    const float f = m != 0 && (m < 0) != (y[i] < 0) ? m + y[i] : m;
    if (std::isnan(m)) {
      ASSERT_TRUE(std::isnan(truncated[i])) << x[i] << " % " << y[i];
      ASSERT_TRUE(std::isnan(floored[i])) << x[i] << " % " << y[i];
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(truncated[i]), std::bit_cast<uint32_t>(m)) << x[i] << " % " << y[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(floored[i]), std::bit_cast<uint32_t>(f)) << x[i] << " % " << y[i];
  }
}

TEST(Remainder, MayReplaceAnOperand) {
  std::vector<float> x, y;
  pairs(x, y);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> apart(x.size()), over_x = x, over_y = y;
  vfloor_mod(x.data(), y.data(), apart.data(), n);
  vfloor_mod(over_x.data(), y.data(), over_x.data(), n);
  vfloor_mod(x.data(), over_y.data(), over_y.data(), n);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(apart[i])) continue;
    ASSERT_EQ(over_x[i], apart[i]);
    ASSERT_EQ(over_y[i], apart[i]);
  }
}

}  // namespace
}  // namespace runnel::cpu
