#include "runnel/kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/random_vector.h"

namespace runnel::cpu {
namespace {

using test::random_vector;

struct Product {
  bool ta, tb;
  int64_t m, n, k;
  float alpha = 1, beta = 0;
  int64_t pad = 0;  // extra distance between rows
  bool bias = false, relu = false;
};

void check_product(const Product& t) {
  SCOPED_TRACE(testing::Message() << t.m << "x" << t.n << "x" << t.k << (t.ta ? " tA" : "") << (t.tb ? " tB" : "")
                                  << " alpha " << t.alpha << " beta " << t.beta << " pad " << t.pad);
  const int64_t lda = (t.ta ? t.m : t.k) + t.pad, ldb = (t.tb ? t.k : t.n) + t.pad, ldc = t.n + t.pad;
  // Exactly as long as the matrix needs: reads past the end are for the address sanitizer to see.
  auto length = [&](int64_t rows, int64_t columns, int64_t ld) { return rows > 0 ? (rows - 1) * ld + columns : 0; };
  const auto a = random_vector<float>(t.ta ? length(t.k, t.m, lda) : length(t.m, t.k, lda), 1);
  const auto b = random_vector<float>(t.tb ? length(t.n, t.k, ldb) : length(t.k, t.n, ldb), 2);
  auto c = random_vector<float>(length(t.m, t.n, ldc), 3);
  if (t.beta == 0) {
    for (int64_t i = 0; i < t.m; ++i) {
      for (int64_t j = 0; j < t.n; ++j) c[i * ldc + j] = NAN;  // must not be read
    }
  }
  const auto bias = random_vector<float>(t.n, 4);
  const auto before = c;
  const Epilogue epilogue{t.bias ? bias.data() : nullptr, t.relu};
  set_num_threads(1);
  gemm_f32(t.ta, t.tb, t.m, t.n, t.k, t.alpha, a.data(), lda, b.data(), ldb, t.beta, c.data(), ldc, epilogue);
  auto c2 = before;
  set_num_threads(2);
  gemm_f32(t.ta, t.tb, t.m, t.n, t.k, t.alpha, a.data(), lda, b.data(), ldb, t.beta, c2.data(), ldc, epilogue);
  ASSERT_TRUE(c.empty() || std::memcmp(c.data(), c2.data(), c.size() * sizeof(float)) == 0)
      << "bits differ with two threads";
  const double tolerance = 1e-6 * (4 + std::sqrt(static_cast<double>(t.k)) * 2);
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < ldc && i * ldc + j < static_cast<int64_t>(c.size()); ++j) {
      if (j >= t.n) {
        ASSERT_EQ(before[i * ldc + j], c[i * ldc + j]) << "wrote between rows";
        continue;
      }
      double sum = 0;
      for (int64_t p = 0; p < t.k; ++p) {
        sum += static_cast<double>(t.ta ? a[p * lda + i] : a[i * lda + p]) *
               static_cast<double>(t.tb ? b[j * ldb + p] : b[p * ldb + j]);
      }
      double want = t.alpha * sum;
      if (t.beta != 0) want += static_cast<double>(t.beta) * before[i * ldc + j];
      if (t.bias) want += bias[j];
      if (t.relu) want = std::max(want, 0.0);
      ASSERT_NEAR(want, c[i * ldc + j], tolerance) << "at " << i << "," << j;
    }
  }
}

TEST(Gemm, ManyShapes) {
  for (int64_t m : {1, 2, 3, 6, 7, 13, 14, 15, 29, 50, 130}) {
    for (int64_t n : {1, 2, 7, 8, 9, 16, 31, 33, 100, 259}) {
      for (int64_t k : {1, 3, 4, 9, 64, 257, 600}) {
        for (int t = 0; t < 4; ++t) check_product({(t & 1) != 0, (t & 2) != 0, m, n, k});
      }
    }
  }
}

TEST(Gemm, ScalesStridesAndEpilogue) {
  for (int64_t m : {1, 5, 14, 40}) {
    for (int64_t n : {1, 10, 64, 70}) {
      for (int64_t k : {1, 20, 300}) {
        for (int t = 0; t < 4; ++t) {
          const bool ta = (t & 1) != 0, tb = (t & 2) != 0;
          check_product({ta, tb, m, n, k, 0.5f, 0.0f, 3});
          check_product({ta, tb, m, n, k, 2.0f, 1.0f, 3});
          check_product({ta, tb, m, n, k, -1.0f, 0.25f, 0, true, false});
          check_product({ta, tb, m, n, k, 1.0f, 0.0f, 5, true, true});
          check_product({ta, tb, m, n, k, 1.0f, 0.0f, 0, false, true});
        }
      }
    }
  }
}

TEST(Gemm, LargeAndSkinny) {
  for (int t = 0; t < 4; ++t) {
    const bool ta = (t & 1) != 0, tb = (t & 2) != 0;
    check_product({ta, tb, 50, 1024, 700});
    check_product({ta, tb, 700, 128, 50});
    check_product({ta, tb, 257, 300, 2300});
    check_product({ta, tb, 20, 30, 9000, 0.5f, 1.0f, 1, true, true});  // cut along k
    check_product({ta, tb, 1, 1030, 3136});
    check_product({ta, tb, 1030, 1, 3136});
    check_product({ta, tb, 1, 10, 50000});
  }
}

TEST(Gemm, EmptySides) {
  check_product({false, false, 0, 5, 3});
  check_product({false, false, 5, 0, 3});
  check_product({false, false, 4, 5, 0, 1, 0, 0, true, false});
  check_product({false, false, 4, 5, 0, 1, 0.5f, 2, true, true});
}

TEST(Gemm, NanSurvivesRelu) {
  const float a[2] = {NAN, 1}, b[4] = {1, 1, 1, 1};
  float c[4];
  gemm_f32(false, false, 2, 2, 1, 1, a, 1, b, 2, 0, c, 2, {nullptr, true});
  EXPECT_TRUE(std::isnan(c[0]));
  EXPECT_EQ(1, c[2]);
}

TEST(Gemm, Batched) {
  for (int64_t batch : {0, 1, 3, 20}) {
    for (bool share_b : {false, true}) {
      const int64_t m = 9, n = 17, k = 21;
      const auto a = random_vector<float>(batch * m * k, 1), b = random_vector<float>((share_b ? 1 : batch) * k * n, 2);
      std::vector<float> c(batch * m * n, NAN);
      gemm_batched_f32(batch, false, false, m, n, k, 1, a.data(), k, m * k, b.data(), n, share_b ? 0 : k * n, 0,
                       c.data(), n, m * n);
      for (int64_t q = 0; q < batch; ++q) {
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double want = 0;
            for (int64_t p = 0; p < k; ++p) {
              want += static_cast<double>(a[(q * m + i) * k + p]) * b[(share_b ? 0 : q * k * n) + p * n + j];
            }
            ASSERT_NEAR(want, c[(q * m + i) * n + j], 1e-5);
          }
        }
      }
    }
  }
}

template <class T>
struct PlainGemm : testing::Test {};
using PlainTypes = testing::Types<float, double, int32_t, int64_t, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(PlainGemm, PlainTypes);

TYPED_TEST(PlainGemm, MatchesNaive) {
  using T = TypeParam;
  constexpr bool is_complex = !std::is_arithmetic_v<T>;
  for (int64_t m : {0, 1, 4, 5, 70}) {
    for (int64_t n : {0, 1, 3, 8, 20}) {
      for (int64_t k : {0, 1, 2, 31, 300}) {
        for (int t = 0; t < 16; ++t) {
          const bool ta = t & 1, tb = t & 2, conj_a = t & 4, conj_b = t & 8;
          if (!is_complex && (conj_a || conj_b)) continue;
          const auto a = random_vector<T>(m * k, 1), b = random_vector<T>(k * n, 2);
          auto c = random_vector<T>(m * n, 3);
          const auto before = c;
          const T alpha = T(2), beta = T(t % 2 ? 0 : 3);
          gemm_plain<T>(ta, tb, m, n, k, alpha, a.data(), ta ? m : k, b.data(), tb ? k : n, beta, c.data(), n, conj_a,
                        conj_b);
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              T want{};
              for (int64_t p = 0; p < k; ++p) {
                T x = ta ? a[p * m + i] : a[i * k + p], y = tb ? b[j * k + p] : b[p * n + j];
                if constexpr (is_complex) {
                  if (conj_a) x = std::conj(x);
                  if (conj_b) y = std::conj(y);
                }
                want += x * y;
              }
              want = alpha * want + beta * before[i * n + j];
              if constexpr (std::is_integral_v<T>) {
                ASSERT_EQ(want, c[i * n + j]);
              } else {
                constexpr bool wide = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
                const double tolerance = wide ? 1e-11 : 3e-4;
                ASSERT_NEAR(0, std::abs(want - c[i * n + j]), tolerance);
              }
            }
          }
        }
      }
    }
  }
}

TEST(PlainGemmInteger, WrapsAround) {
  const int32_t a[1] = {1 << 30}, b[1] = {4};
  int32_t c[1] = {7};
  gemm_plain<int32_t>(false, false, 1, 1, 1, 1, a, 1, b, 1, 1, c, 1);
  EXPECT_EQ(7, c[0]);
}

TEST(Gemm, APackedMatrixGivesTheSameBits) {
  int packed_ones = 0;
  for (const int64_t n : {40, 48, 49, 63, 64, 65, 80, 95, 96, 100, 103, 104, 105}) {
    for (const int64_t k : {80, 200, 333, 784, 2000, 4000}) {
      ASSERT_FALSE(gemm_packs(2, n, k));
      if (!gemm_packs(1, n, k)) continue;
      ++packed_ones;
      const auto a = random_vector<float>(k, 1), b = random_vector<float>(k * n, 2), bias = random_vector<float>(n, 3);
      std::vector<float> memory(gemm_packed_size(n, k) + 16, NAN);  // what is left unwritten must not count
      float* packed = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / sizeof(float);
      gemm_pack(n, k, b.data(), packed);
      std::vector<float> want(n), got(n);
      for (const int threads : {1, 2}) {
        set_num_threads(threads);
        gemm_f32(false, false, 1, n, k, 1, a.data(), k, b.data(), n, 0, want.data(), n, {bias.data(), true});
        gemm_packed_f32(n, k, a.data(), packed, got.data(), {bias.data(), true});
        ASSERT_EQ(want, got) << n << " x " << k;
      }
    }
  }
  EXPECT_EQ(packed_ones > 20, has_avx512()) << packed_ones;
}

}  // namespace
}  // namespace runnel::cpu
