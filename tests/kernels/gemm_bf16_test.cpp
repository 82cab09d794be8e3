#include "runnel/kernels/cpu/gemm_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "tests/support/random_vector.h"

namespace runnel::cpu {
namespace {

using Values = std::vector<BFloat16>;

Values random_bf16(int64_t n, int seed) {
  const auto floats = test::random_vector<float>(n, seed);
  Values values;
  for (const float x : floats) values.emplace_back(x);
  return values;
}

struct Bf16Product {
  bool ta, tb;
  int64_t m, n, k;
  int64_t batch = 1;
  bool share_a = false, share_b = false;
  int64_t pad = 0;  // extra distance between rows
};

Values multiply(const Bf16Product& t, const Values& a, const Values& b) {
  const int64_t lda = (t.ta ? t.m : t.k) + t.pad, ldb = (t.tb ? t.k : t.n) + t.pad, ldc = t.n + t.pad;
  Values c(static_cast<size_t>(t.batch * t.m * ldc), BFloat16(77));
  gemm_batched_bf16(t.batch, t.ta, t.tb, t.m, t.n, t.k, a.data(), lda, t.share_a ? 0 : lda * (t.ta ? t.k : t.m),
                    b.data(), ldb, t.share_b ? 0 : ldb * (t.tb ? t.n : t.k), c.data(), ldc, t.m * ldc);
  return c;
}

// Against sums in double: the sum in float32 errs by far less than the rounding of the result to 8 bits.
void check_bf16_product(const Bf16Product& t) {
  SCOPED_TRACE(testing::Message() << t.batch << " of " << t.m << "x" << t.n << "x" << t.k << (t.ta ? " tA" : "")
                                  << (t.tb ? " tB" : "") << " pad " << t.pad);
  const int64_t lda = (t.ta ? t.m : t.k) + t.pad, ldb = (t.tb ? t.k : t.n) + t.pad, ldc = t.n + t.pad;
  const int64_t size_a = lda * (t.ta ? t.k : t.m), size_b = ldb * (t.tb ? t.n : t.k);
  const Values a = random_bf16(size_a * (t.share_a ? 1 : t.batch), 1);
  const Values b = random_bf16(size_b * (t.share_b ? 1 : t.batch), 2);
  set_num_threads(1);
  const Values c = multiply(t, a, b);
  set_num_threads(2);
  const Values again = multiply(t, a, b);
  ASSERT_TRUE(c.empty() || std::memcmp(c.data(), again.data(), c.size() * sizeof(BFloat16)) == 0);
  for (int64_t q = 0; q < t.batch; ++q) {
    const BFloat16* pa = a.data() + (t.share_a ? 0 : q * size_a);
    const BFloat16* pb = b.data() + (t.share_b ? 0 : q * size_b);
    for (int64_t i = 0; i < t.m; ++i) {
      for (int64_t j = 0; j < t.n; ++j) {
        double sum = 0, size = 0;
        for (int64_t p = 0; p < t.k; ++p) {
          const double term = static_cast<double>(t.ta ? pa[p * lda + i] : pa[i * lda + p]) *
                              static_cast<double>(t.tb ? pb[j * ldb + p] : pb[p * ldb + j]);
          sum += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(sum, c[(q * t.m + i) * ldc + j], std::abs(sum) / 250 + size * 1e-6) << q << "," << i << "," << j;
      }
      for (int64_t j = t.n; j < ldc; ++j) ASSERT_EQ(77.f, c[(q * t.m + i) * ldc + j]) << "between the rows";
    }
  }
}

class Bf16Gemm : public testing::Test {
  void SetUp() override {
    if (!multiplies_bf16()) GTEST_SKIP() << "this CPU does not multiply bfloat16";
  }
};

TEST(Bf16GemmChoice, IsThatOfTheCpu) { EXPECT_EQ(multiplies_bf16(), has_avx512_bf16()); }

TEST_F(Bf16Gemm, SmallAndOddShapes) {
  for (const int64_t m : {1, 2, 3, 17, 50}) {
    for (const int64_t n : {1, 2, 7, 33, 100}) {
      for (const int64_t k : {1, 2, 3, 64, 257}) {
        for (int t = 0; t < 4; ++t) check_bf16_product({(t & 1) != 0, (t & 2) != 0, m, n, k});
      }
    }
  }
}

TEST_F(Bf16Gemm, SeveralBlocks) {
  for (int t = 0; t < 4; ++t) {
    const bool ta = (t & 1) != 0, tb = (t & 2) != 0;
    check_bf16_product({ta, tb, 70, 1100, 90});
    check_bf16_product({ta, tb, 600, 130, 40});
    check_bf16_product({ta, tb, 33, 65, 5000});
    check_bf16_product({ta, tb, 1, 1030, 700});
    check_bf16_product({ta, tb, 1030, 1, 700});
  }
}

TEST_F(Bf16Gemm, BatchesStridesAndSharedMatrices) {
  for (int t = 0; t < 4; ++t) {
    const bool ta = (t & 1) != 0, tb = (t & 2) != 0;
    for (const int64_t batch : {2, 7, 40}) {
      check_bf16_product({ta, tb, 20, 30, 40, batch});
      check_bf16_product({ta, tb, 20, 30, 40, batch, true, false});
      check_bf16_product({ta, tb, 20, 30, 40, batch, false, true, 3});
      check_bf16_product({ta, tb, 9, 1, 5, batch});
    }
    check_bf16_product({ta, tb, 5, 6, 7, 1, false, false, 2});
    check_bf16_product({ta, tb, 150, 200, 100, 3});
  }
}

TEST_F(Bf16Gemm, EmptySides) {
  check_bf16_product({false, false, 0, 5, 3});
  check_bf16_product({false, false, 5, 0, 3});
  check_bf16_product({false, false, 4, 5, 0, 2, false, false, 1});
}

TEST_F(Bf16Gemm, NumbersThatAreNotFiniteStayWhereTheyAre) {
  const float inf = std::numeric_limits<float>::infinity();
  Values a(4 * 40, BFloat16(1.f)), b(40 * 6, BFloat16(1.f));
  a[0] = BFloat16(NAN);                           // row 0
  a[40 + 39] = BFloat16(inf);                     // row 1
  a[80] = BFloat16(inf), a[81] = BFloat16(-inf);  // row 2
  const Values c = multiply({false, false, 4, 6, 40}, a, b);
  for (int64_t j = 0; j < 6; ++j) {
    EXPECT_TRUE(std::isnan(c[j]));
    EXPECT_EQ(inf, c[6 + j]);
    EXPECT_TRUE(std::isnan(c[12 + j]));
    EXPECT_EQ(40.f, c[18 + j]);
  }
}

// 1 + 256 times 2^-9 is 1.5 in float32; a sum in bfloat16 would stay at 1.
TEST_F(Bf16Gemm, SumsInFloat32) {
  Values a(257, BFloat16(1.f / 512)), b(257, BFloat16(1.f));
  a[0] = BFloat16(1.f);
  EXPECT_EQ(1.5f, multiply({false, false, 1, 1, 257}, a, b)[0]);
}

}  // namespace
}  // namespace runnel::cpu
