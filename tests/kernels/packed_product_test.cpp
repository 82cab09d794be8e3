#include "runnel/kernels/cpu/packed_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/random_vector.h"

namespace runnel::cpu {
namespace {

using test::random_vector;

template <class T>
void check_packed_product(bool transposed, int64_t m, int64_t n, int64_t k, int64_t pad) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << (transposed ? " transposed" : "") << " pad " << pad);
  const int64_t lda = k + pad, ldb = (transposed ? k : n) + pad, ldc = n + pad;
  const auto a = random_vector<T>(m * lda, 1);
  const auto b = random_vector<T>((transposed ? n : k) * ldb, 2);
  const auto before = random_vector<T>(m * ldc, 3);
  ScratchFrame frame;
  const PackedMatrix<T> packed(frame, transposed, k, n, b.data(), ldb);
  auto c = before;
  packed.add_product(m, a.data(), lda, c.data(), ldc);
  auto rows = before;  // one by one: the same bits
  for (int64_t i = 0; i < m; ++i) packed.add_product(1, a.data() + i * lda, lda, rows.data() + i * ldc, ldc);
  EXPECT_TRUE(c == rows);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      double sum = before[static_cast<size_t>(i * ldc + j)];
      for (int64_t p = 0; p < k && j < n; ++p) {
        sum += static_cast<double>(a[static_cast<size_t>(i * lda + p)]) *
               static_cast<double>(b[static_cast<size_t>(transposed ? j * ldb + p : p * ldb + j)]);
      }
      ASSERT_NEAR(c[static_cast<size_t>(i * ldc + j)], sum, 1e-4 * std::max(1.0, std::abs(sum))) << i << "," << j;
    }
  }
}

TEST(PackedProduct, AddsTheProduct) {
  for (const bool transposed : {false, true}) {
    for (const int64_t n : {1, 8, 17, 63, 64, 65, 130}) {
      for (const int64_t m : {1, 5, 6, 7, 16}) {
        check_packed_product<float>(transposed, m, n, 19, n % 3);
        check_packed_product<double>(transposed, m, n, 19, n % 3);
      }
    }
    check_packed_product<float>(transposed, 13, 100, 300, 1);  // longer than the depth of a panel
    check_packed_product<float>(transposed, 64, 520, 128, 0);  // on several threads
  }
}

TEST(PackedProduct, OfNothing) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{0, 4, 4}, {4, 4, 0}, {4, 0, 4}}) {
    check_packed_product<float>(false, m, n, k, 0);
    check_packed_product<double>(true, m, n, k, 0);
  }
}

}  // namespace
}  // namespace runnel::cpu
