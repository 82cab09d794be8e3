#include "runnel/base/cpu.h"

#include <gtest/gtest.h>

#include "runnel/base/error.h"

namespace runnel {
namespace {

TEST(Cpu, LevelsOnlyLower) {
  const CpuFeatures all = detect_cpu(nullptr);
  const CpuFeatures baseline = detect_cpu("baseline");
  EXPECT_FALSE(baseline.sse42 || baseline.avx2 || baseline.avx512);
  const CpuFeatures avx2 = detect_cpu("avx2");
  EXPECT_EQ(avx2.avx2, all.avx2);
  EXPECT_FALSE(avx2.avx512);
  EXPECT_EQ(detect_cpu("avx512").avx512, all.avx512);
  EXPECT_FALSE(detect_cpu("avx512").avx512_bf16);
  EXPECT_TRUE(!all.avx512_bf16 || all.avx512);
  EXPECT_TRUE(!all.avx512 || all.avx2);
  EXPECT_TRUE(!all.avx2 || all.sse42);
}

TEST(Cpu, RefusesUnknownLevels) {
  EXPECT_THROW(detect_cpu("sse9"), Error);
  EXPECT_THROW(detect_cpu(""), Error);
}

}  // namespace
}  // namespace runnel
