#include "runnel/base/flush_denormals.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <stdexcept>
#include <vector>

#include "runnel/base/parallel.h"

namespace runnel {
namespace {

constexpr float kTiny = std::numeric_limits<float>::denorm_min();

float times(float x, float y) {
  const volatile float a = x, b = y;
  return a * b;
}

#if defined(__SSE2__)

TEST(FlushDenormals, InputsAndResultsAreZeroWhileItLives) {
  const float normal = std::numeric_limits<float>::min();
  {
    const FlushDenormals flush;
    EXPECT_EQ(times(kTiny, 0x1p30f), 0.f);
    EXPECT_EQ(times(normal, 0.5f), 0.f);
  }
  EXPECT_NE(times(kTiny, 0x1p30f), 0.f);
  EXPECT_NE(times(normal, 0.5f), 0.f);
}

TEST(FlushDenormals, WhatTheCallerHadSetComesBack) {
  const unsigned before = __builtin_ia32_stmxcsr();
  for (const int rounding : {FE_TONEAREST, FE_UPWARD}) {
    std::fesetround(rounding);
    const unsigned own = __builtin_ia32_stmxcsr();
    {
      const FlushDenormals outer;
      {
        const FlushDenormals inner;
        EXPECT_EQ(times(1.f + std::numeric_limits<float>::epsilon(), 1.f + std::numeric_limits<float>::epsilon()),
                  1.f + 2 * std::numeric_limits<float>::epsilon());  // rounded to nearest
      }
      EXPECT_EQ(times(kTiny, 0x1p30f), 0.f);
    }
    EXPECT_EQ(__builtin_ia32_stmxcsr(), own);
    EXPECT_THROW(
        {
          const FlushDenormals flush;
          throw std::runtime_error("");
        },
        std::runtime_error);
    EXPECT_EQ(__builtin_ia32_stmxcsr(), own);
  }
  std::fesetround(FE_TONEAREST);  // of all units, not of the one with this register alone
  __builtin_ia32_ldmxcsr(before);
}

TEST(FlushDenormals, AllRangesOfAParallelForComputeAlike) {
  const int before = num_threads();
  const unsigned own = __builtin_ia32_stmxcsr();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    std::vector<float> results(64, 1.f);
    parallel_for(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) results[static_cast<size_t>(i)] = times(kTiny, 0x1p30f);
    });
    EXPECT_EQ(results, std::vector<float>(64, 0.f));
    EXPECT_EQ(__builtin_ia32_stmxcsr(), own);
  }
  set_num_threads(before);
}

#endif

}  // namespace
}  // namespace runnel
