#include "runnel/base/machine_peak.h"

#include <gtest/gtest.h>

#include <chrono>

namespace runnel {
namespace {

// Bounds that hold for any machine of the last and of the next ten years, also under a sanitizer.
TEST(MachinePeak, IsMeasuredOnce) {
  const MachinePeak& first = machine_peak();
  EXPECT_TRUE(first.known());
  EXPECT_GT(first.flops_per_second, 1e8);
  EXPECT_LT(first.flops_per_second, 1e15);
  EXPECT_GT(first.bytes_per_second, 1e7);
  EXPECT_LT(first.bytes_per_second, 1e14);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(&machine_peak(), &first);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(10));
  EXPECT_FALSE(MachinePeak{}.known());
}

}  // namespace
}  // namespace runnel
