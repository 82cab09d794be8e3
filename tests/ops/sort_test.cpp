// Sorting, the largest elements, distinct elements and counting, against the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

template <class T>
std::vector<T> shuffled(size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<T> v;
  for (size_t i = 0; i < n; ++i) {
    const int k = static_cast<int>(random() % 23);
    if constexpr (std::is_unsigned_v<T>) {
      v.push_back(static_cast<T>(k));
    } else {
      v.push_back(static_cast<T>(static_cast<float>(k - 11)));
    }
  }
  return v;
}

template <class T>
std::vector<int32_t> stable_order(const T* row, int64_t n, bool down) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return down ? row[a] > row[b] : row[a] < row[b]; });
  return order;
}

TEST(Sort, MatchesStableSortForEveryDtype) {
  real_numbers.for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const auto v = shuffled<T>(3 * 40);
    const Tensor x = Tensor::of<T>(v, {3, 40});
    for (bool down : {false, true}) {
      const char* direction = down ? "DESCENDING" : "ASCENDING";
      std::vector<int32_t> order;
      std::vector<float> values;
      for (size_t r = 0; r < 3; ++r) {
        for (int32_t i : stable_order(v.data() + r * 40, 40, down)) {
          order.push_back(i);
          values.push_back(static_cast<float>(v[r * 40 + static_cast<size_t>(i)]));
        }
      }
      EXPECT_EQ(argsort(x, -1, direction).template to_vector<int32_t>(), order);
      EXPECT_EQ(cast(runnel::sort(x, 1, direction), float32).template to_vector<float>(), values);
    }
  });
}

TEST(Sort, AlongOtherAxes) {
  const Tensor x{{3.f, 1.f}, {2.f, 9.f}, {5.f, 0.f}};
  EXPECT_EQ(runnel::sort(x, 0).to_vector<float>(), (std::vector<float>{2, 0, 3, 1, 5, 9}));
  EXPECT_EQ(argsort(x, 0, "DESCENDING").to_vector<int32_t>(), (std::vector<int32_t>{2, 1, 0, 0, 1, 2}));
  EXPECT_EQ(runnel::sort(x, -2).shape(), (Shape{3, 2}));
}

TEST(Sort, LimitsZerosAndNan) {
  const Tensor ints{std::numeric_limits<int32_t>::min(), 0, std::numeric_limits<int32_t>::max(), -1};
  EXPECT_EQ(argsort(ints).to_vector<int32_t>(), (std::vector<int32_t>{0, 3, 1, 2}));
  const Tensor bytes = Tensor::of<uint8_t>({200, 0, 255, 1});
  EXPECT_EQ(argsort(bytes).to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 0, 2}));
  EXPECT_EQ(argsort(Tensor{0.f, -0.f, 0.f}).to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2}));
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor odd{1.f, NAN, -inf, inf};
  EXPECT_EQ(argsort(odd).to_vector<int32_t>(), (std::vector<int32_t>{2, 0, 3, 1}));
  EXPECT_EQ(argsort(odd, -1, "DESCENDING").to_vector<int32_t>(), (std::vector<int32_t>{3, 0, 2, 1}));
}

TEST(Sort, EmptyAndErrors) {
  EXPECT_EQ(runnel::sort(Tensor::empty(DType::float32, {2, 0})).shape(), (Shape{2, 0}));
  EXPECT_EQ(runnel::sort(Tensor::empty(DType::float32, {0, 3})).shape(), (Shape{0, 3}));
  expect_error([] { runnel::sort(Tensor{1.f}, 1); }, Code::invalid_argument, "out of range");
  expect_error([] { runnel::sort(Tensor(1.f)); }, Code::invalid_argument, "scalar");
  expect_error([] { runnel::sort(Tensor{1.f}, 0, "UP"); }, Code::invalid_argument, "'UP'");
  expect_error([] { runnel::sort(Tensor{"a"}); }, Code::invalid_argument, "string");
}

TEST(Sort, GradientFollowsTheElements) {
  GradientTape tape;
  const Tensor x{{3.f, 1.f, 2.f}, {7.f, 9.f, 8.f}};
  tape.watch(x);
  const Tensor y = runnel::sort(x) * Tensor{1.f, 10.f, 100.f};
  EXPECT_EQ(Tensor(tape.gradient(y, x)).to_vector<float>(), (std::vector<float>{100, 1, 10, 1, 100, 10}));
}

TEST(TopK, TiesGoToTheLowestIndex) {
  const auto [values, indices] = math::top_k(Tensor{{4, 7, 7, 1, 7}, {5, 5, 5, 5, 5}}, 3);
  EXPECT_EQ(values.to_vector<int32_t>(), (std::vector<int32_t>{7, 7, 7, 5, 5, 5}));
  EXPECT_EQ(indices.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 4, 0, 1, 2}));
}

TEST(TopK, MatchesSortForEveryDtypeAndK) {
  real_numbers.for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const auto v = shuffled<T>(60, 5);
    const auto order = stable_order(v.data(), 60, true);
    for (int k : {0, 1, 7, 60}) {
      const auto found = math::top_k(Tensor::of<T>(v), k, true, int64);
      EXPECT_EQ(found.indices.template to_vector<int64_t>(), std::vector<int64_t>(order.begin(), order.begin() + k));
      EXPECT_EQ(found.values.shape(), Shape{k});
    }
  });
}

// Few of many, which are found without sorting the others; many ties.
TEST(TopK, FewOfMany) {
  for (const int64_t k : {1, 3, 60}) {
    const Tensor x = random::stateless_uniform({3, 5000}, {1, 2}, 0, 700, int32);
    const auto few = math::top_k(cast(x, float32), k);
    const Tensor order = argsort(x, -1, "DESCENDING", true);
    EXPECT_EQ(few.indices.to_vector<int32_t>(), order(all, slice(0, k)).to_vector<int32_t>()) << k;
    EXPECT_EQ(math::top_k(x, k).indices.to_vector<int32_t>(), few.indices.to_vector<int32_t>());
    const Tensor rising = range(5000) * Tensor(1);  // each is better than all before it
    EXPECT_EQ(math::top_k(rising, k).indices.to_vector<int32_t>()[0], 4999);
  }
}

// As the integers of one order; NaN comes last, wherever it stands, and both zeros are one number.
TEST(TopK, FewOfManyFloatsOfAllKinds) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const int kind : {0, 1, 2}) {
    std::vector<float> x(3001, kind == 0 ? nan : -inf);
    for (size_t i = kind == 1 ? 2990 : 500; i < x.size(); ++i) {
      const size_t n = i * 7919 % 3001;
      x[i] = n % 50 == 0 ? nan : n % 60 == 7 ? -0.0f : n % 60 == 9 ? 0.0f : -static_cast<float>(n / 40);
    }
    std::vector<int64_t> order(x.size());
    for (size_t i = 0; i < x.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const float p = x[static_cast<size_t>(a)], q = x[static_cast<size_t>(b)];
      return std::isnan(q) ? !std::isnan(p) : p > q;
    });
    for (const int k : {1, 5, 180}) {
      EXPECT_EQ(math::top_k(Tensor::of(x), k, true, int64).indices.to_vector<int64_t>(),
                std::vector<int64_t>(order.begin(), order.begin() + k))
          << kind << ", " << k;
    }
  }
}

TEST(TopK, Errors) {
  expect_error([] { math::top_k(Tensor{1.f, 2.f}, 3); }, Code::invalid_argument, "[TopKV2] rows of 2 elements");
  expect_error([] { math::top_k(Tensor{1.f, 2.f}, -1); }, Code::invalid_argument, "negative");
  expect_error([] { math::top_k(Tensor(1.f), 1); }, Code::invalid_argument, "rank");
}

TEST(Sort, SameBitsWithOneAndTwoThreads) {
  const Tensor x = Tensor::of<float>(shuffled<float>(1000000), {100, 10000});
  const int before = num_threads();
  std::vector<std::vector<int32_t>> results;
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    results.push_back(argsort(x).to_vector<int32_t>());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Unique, FirstAppearanceForEveryDtype) {
  (real_numbers + booleans).for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    std::vector<T> v;
    for (int k : {1, 0, 1, 1, 0}) v.push_back(static_cast<T>(static_cast<float>(k)));
    const auto found = unique_with_counts(Tensor::of<T>(v), int64);
    EXPECT_EQ(cast(found.y, int32).template to_vector<int32_t>(), (std::vector<int32_t>{1, 0}));
    EXPECT_EQ(found.idx.template to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0, 0, 1}));
    EXPECT_EQ(found.count.template to_vector<int64_t>(), (std::vector<int64_t>{3, 2}));
  });
  const auto text = unique(Tensor{"b", "a", "b", ""});
  EXPECT_EQ(text.y.to_vector<std::string>(), (std::vector<std::string>{"b", "a", ""}));
  EXPECT_EQ(text.idx.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 0, 2}));
}

TEST(Unique, ManyElementsAndNone) {
  std::mt19937 random(3);
  std::vector<int64_t> v;
  for (int i = 0; i < 20000; ++i) v.push_back(static_cast<int64_t>(random() % 500) - 250);
  const auto found = unique(Tensor::of<int64_t>(v));
  const auto y = found.y.to_vector<int64_t>();
  const auto idx = found.idx.to_vector<int32_t>();
  EXPECT_EQ(std::set<int64_t>(y.begin(), y.end()).size(), y.size());
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(y[static_cast<size_t>(idx[i])], v[i]);
  EXPECT_EQ(unique(Tensor::empty(DType::float32, {0})).y.shape(), Shape{0});
  EXPECT_EQ(unique(Tensor{0.f, -0.f}).y.num_elements(), 1);
  expect_error([] { unique(Tensor{{1}}); }, Code::invalid_argument, "rank 1");
}

TEST(Bincount, CountsAndWeights) {
  const Tensor x{1, 5, 1, 0, 2};
  EXPECT_EQ(math::bincount(x).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 1, 0, 0, 1}));
  EXPECT_EQ(math::bincount(x, {.minlength = 8}).shape(), Shape{8});
  EXPECT_EQ(math::bincount(x, {.maxlength = 2}).to_vector<int32_t>(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(math::bincount(x, {.weights = Tensor{1.f, 2.f, 4.f, 8.f, 16.f}, .maxlength = 3}).to_vector<float>(),
            (std::vector<float>{8, 5, 16}));
  EXPECT_EQ(math::bincount(x, {.dtype = float64}).dtype(), float64);
  EXPECT_EQ(math::bincount(Tensor{{1, 1, 0}, {2, 2, 2}}, {.axis = -1}).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2, 0, 0, 0, 3}));
  EXPECT_EQ(math::bincount(Tensor{{1, 1, 0}, {2, 2, 2}}, {.axis = -1, .binary_output = true}).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 1, 0, 0, 0, 1}));
  EXPECT_EQ(math::bincount(cast(Tensor{{1, 1}, {2, 0}}, int64), {.axis = 0}).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2, 1}));
  EXPECT_EQ(math::bincount(Tensor::empty(DType::int32, {0})).shape(), Shape{0});
}

TEST(Bincount, Errors) {
  expect_error([] { math::bincount(Tensor{1, -2}); }, Code::invalid_argument, "[Bincount] a value is negative: -2");
  expect_error([] { math::bincount(Tensor{1.f}); }, Code::invalid_argument, "must be integers");
  expect_error([] { math::bincount(Tensor{1, 2}, {.weights = Tensor{1.f}}); }, Code::invalid_argument, "weights");
  expect_error([] { math::bincount(Tensor{1}, {.axis = 2}); }, Code::invalid_argument, "axis");
  expect_error([] { math::bincount(Tensor{1}, {.minlength = -5}); }, Code::invalid_argument, "minlength");
}

TEST(ConfusionMatrix, Counts) {
  const Tensor m = math::confusion_matrix(Tensor{1, 2, 4}, Tensor{2, 2, 4});
  EXPECT_EQ(m.shape(), (Shape{5, 5}));
  EXPECT_EQ(m.to_vector<int32_t>()[1 * 5 + 2], 1);
  EXPECT_EQ(m.to_vector<int32_t>()[2 * 5 + 2], 1);
  EXPECT_EQ(reduce_sum(m).item<int32_t>(), 3);
  const Tensor w = math::confusion_matrix(Tensor{0, 1}, Tensor{1, 1}, 2, Tensor{0.5f, 2.f}, float32);
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{0, 0.5f, 0, 2}));
  expect_error([] { math::confusion_matrix(Tensor{0, 3}, Tensor{0, 1}, 2); }, Code::invalid_argument, "not below");
  expect_error([] { math::confusion_matrix(Tensor{0, -3}, Tensor{0, 1}); }, Code::invalid_argument, "negative");
}

TEST(Histogram, FixedWidth) {
  Types<int32_t, int64_t, float, double>::for_each([]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const Tensor x = cast(Tensor{-1.f, 0.f, 1.f, 2.f, 5.f, 15.f}, dtype_of<T>);
    const Tensor range = cast(Tensor{0.f, 5.f}, dtype_of<T>);
    EXPECT_EQ(histogram_fixed_width(x, range, 5).template to_vector<int32_t>(), (std::vector<int32_t>{2, 1, 1, 0, 2}));
    EXPECT_EQ(histogram_fixed_width_bins(x, range, 5).template to_vector<int32_t>(),
              (std::vector<int32_t>{0, 0, 1, 2, 4, 4}));
  });
  EXPECT_EQ(histogram_fixed_width(Tensor::empty(DType::float32, {0}), Tensor{0.f, 1.f}, 3, int64).to_vector<int64_t>(),
            std::vector<int64_t>(3, 0));
  expect_error([] { histogram_fixed_width(Tensor{1.f}, Tensor{2.f, 1.f}, 3); }, Code::invalid_argument, "must go up");
  expect_error([] { histogram_fixed_width(Tensor{1.f}, Tensor{2.f}, 3); }, Code::invalid_argument, "pair");
  expect_error([] { histogram_fixed_width(Tensor{1.f}, Tensor{0.f, 2.f}, 0); }, Code::invalid_argument, "nbins");
}

}  // namespace
}  // namespace runnel
