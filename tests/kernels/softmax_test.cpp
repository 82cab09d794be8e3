#include "runnel/kernels/cpu/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runnel/base/parallel.h"
#include "runnel/tensor/type_sets.h"

namespace runnel::cpu {
namespace {

struct Naive {
  std::vector<double> softmax, log_softmax;
  double logsumexp;
};

template <class T>
Naive naive(const T* x, int64_t n) {
  Naive r;
  long double m = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) m = std::max<long double>(m, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<long double>(x[i]) - m);
  for (int64_t i = 0; i < n; ++i) {
    r.softmax.push_back(std::exp(static_cast<long double>(x[i]) - m) / sum);
    r.log_softmax.push_back(x[i] - m - std::log(sum));
  }
  r.logsumexp = m + std::log(sum);
  return r;
}

template <class T>
class Softmax : public testing::Test {};
using RealTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Softmax, RealTypes);

TYPED_TEST(Softmax, RowsMatchNaive) {
  using T = TypeParam;
  const double eps = std::numeric_limits<T>::epsilon();
  std::mt19937 gen(3);
  std::normal_distribution<T> normal(0, 5);
  for (int64_t cols : {1, 2, 3, 7, 8, 9, 10, 15, 16, 17, 33, 100, 1000}) {
    const int64_t rows = 5;
    std::vector<T> x(rows * cols), y(rows * cols + 1, 9), z(rows * cols + 1, 9), lse(rows);
    std::vector<T> labels(rows * cols, 0), loss(rows), back(rows * cols + 1, 9), dense(rows), dense_back(rows * cols);
    std::vector<int32_t> index(rows);
    for (auto& v : x) v = normal(gen);
    for (int64_t i = 0; i < cols; ++i) x[i] += 1000;  // a row far from 0
    for (int64_t r = 0; r < rows; ++r) {
      index[r] = static_cast<int32_t>(gen() % cols);
      labels[r * cols + index[r]] = 1;
    }
    softmax_rows(x.data(), y.data(), rows, cols, false);
    softmax_rows(x.data(), z.data(), rows, cols, true);
    logsumexp_rows(x.data(), lse.data(), rows, cols);
    sparse_softmax_cross_entropy_rows(x.data(), index.data(), loss.data(), back.data(), rows, cols);
    softmax_cross_entropy_rows(x.data(), labels.data(), dense.data(), dense_back.data(), rows, cols);
    for (int64_t r = 0; r < rows; ++r) {
      const Naive want = naive(&x[r * cols], cols);
      EXPECT_NEAR(lse[r], want.logsumexp, 4 * eps * (1 + std::abs(want.logsumexp)));
      EXPECT_NEAR(loss[r], -want.log_softmax[index[r]], 8 * eps * (1 - want.log_softmax[index[r]]));
      EXPECT_NEAR(dense[r], -want.log_softmax[index[r]], 8 * eps * (1 - want.log_softmax[index[r]]));
      for (int64_t i = 0; i < cols; ++i) {
        const int64_t k = r * cols + i;
        ASSERT_NEAR(y[k], want.softmax[i], 40 * eps * want.softmax[i] + 1e-44);
        ASSERT_NEAR(z[k], want.log_softmax[i], 8 * eps * (1 - want.log_softmax[i]));
        ASSERT_NEAR(back[k], want.softmax[i] - labels[k], 16 * eps);
        ASSERT_NEAR(dense_back[k], want.softmax[i] - labels[k], 16 * eps);
      }
    }
    ASSERT_EQ(y.back(), 9);
    ASSERT_EQ(z.back(), 9);
    ASSERT_EQ(back.back(), 9);
    std::vector<T> in_place = x;
    sparse_softmax_cross_entropy_rows(in_place.data(), index.data(), loss.data(), in_place.data(), rows, cols);
    ASSERT_EQ(std::memcmp(in_place.data(), back.data(), rows * cols * sizeof(T)), 0);
    std::vector<T> only_loss(rows);
    sparse_softmax_cross_entropy_rows(x.data(), index.data(), only_loss.data(), static_cast<T*>(nullptr), rows, cols);
    ASSERT_EQ(only_loss, loss);
    softmax_rows(x.data(), x.data(), rows, cols, false);
    ASSERT_EQ(std::memcmp(x.data(), y.data(), rows * cols * sizeof(T)), 0);
  }
}

TYPED_TEST(Softmax, Extremes) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity();
  const T x[3] = {-inf, 0, -inf};
  T y[3];
  softmax_rows(x, y, 1, 3, false);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 1);
  const T nan[3] = {1, NAN, 2};
  softmax_rows(nan, y, 1, 3, false);
  for (T v : y) EXPECT_TRUE(std::isnan(v));
  const T nothing[2] = {-inf, -inf};
  T lse;
  logsumexp_rows(nothing, &lse, 1, 2);
  EXPECT_EQ(lse, -inf);
  // A label of 0 hides a logit of -inf, as in TensorFlow.
  const T labels[3] = {0, 1, 0};
  T loss;
  softmax_cross_entropy_rows(x, labels, &loss, y, 1, 3);
  EXPECT_EQ(loss, 0);
}

TEST(Softmax, SameBitsWithOneAndTwoThreads) {
  std::mt19937 gen(4);
  std::normal_distribution<float> normal;
  const int64_t rows = 999, cols = 101;
  std::vector<float> x(rows * cols), one(rows * cols), two(rows * cols);
  for (auto& v : x) v = normal(gen);
  set_num_threads(1);
  softmax_rows(x.data(), one.data(), rows, cols, false);
  set_num_threads(2);
  softmax_rows(x.data(), two.data(), rows, cols, false);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace runnel::cpu
