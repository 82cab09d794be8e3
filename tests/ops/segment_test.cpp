// Segment reductions against loops over the rows.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <map>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

template <class T>
constexpr bool is_complex_number = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
Tensor counting(const Shape& shape) {
  std::vector<T> v;
  for (int64_t i = 0; i < shape.num_elements(); ++i) v.push_back(static_cast<T>(static_cast<float>(i * 7 % 5 + 1)));
  return Tensor::of<T>(v, shape);
}

enum class Kind { sum, mean, prod, max, min };

// What each row of the result should be, from the list of its values in one column.
template <class T>
T fold(Kind kind, const std::vector<T>& list, bool sorted) {
  using A = std::conditional_t<HalfFloat<T>, float, T>;
  A result = static_cast<A>(kind == Kind::prod ? T(1) : T(0));
  if (list.empty()) {
    if constexpr (!is_complex_number<T>) {
      if (kind == Kind::max && !sorted) return std::numeric_limits<T>::lowest();
      if (kind == Kind::min && !sorted) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(result);
  }
  if (kind == Kind::max || kind == Kind::min) result = static_cast<A>(list[0]);
  for (T v : list) {
    const A a = static_cast<A>(v);
    if (kind == Kind::sum || kind == Kind::mean) result = static_cast<A>(result + a);
    if (kind == Kind::prod) result = static_cast<A>(result * a);
    if constexpr (!is_complex_number<T>) {
      if (kind == Kind::max) result = std::max(result, a);
      if (kind == Kind::min) result = std::min(result, a);
    }
  }
  if (kind == Kind::mean) result = static_cast<A>(result / static_cast<A>(static_cast<float>(list.size())));
  return static_cast<T>(result);
}

template <class T>
std::vector<T> naive(Kind kind, const Tensor& data, const std::vector<int64_t>& ids, int64_t segments, bool sorted) {
  const auto v = data.to_vector<T>();
  const int64_t width = static_cast<int64_t>(v.size() / ids.size());
  std::vector<T> result;
  for (int64_t s = 0; s < segments; ++s) {
    for (int64_t j = 0; j < width; ++j) {
      std::vector<T> list;
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] == s) list.push_back(v[i * static_cast<size_t>(width) + static_cast<size_t>(j)]);
      }
      result.push_back(fold<T>(kind, list, sorted));
    }
  }
  return result;
}

template <class T>
void expect_near_rows(const std::vector<T>& got, const std::vector<T>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      EXPECT_EQ(got[i], want[i]) << i;
    } else if constexpr (is_complex_number<T>) {
      EXPECT_NEAR(std::abs(got[i] - want[i]), 0, 1e-4) << i;
    } else {
      const double w = static_cast<double>(want[i]);
      EXPECT_NEAR(static_cast<double>(got[i]), w, std::abs(w) * 0.01) << i;
    }
  }
}

TEST(Segment, SortedMatchesLoopsForEveryDtype) {
  const std::vector<int64_t> ids{0, 0, 2, 2, 2, 5};
  numbers.for_each([&]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const Tensor data = counting<T>({6, 3});
    for (DType index : {int32, int64}) {
      const Tensor id = cast(Tensor::of<int64_t>(ids), index);
      const Shape shape{6, 3};
      auto check = [&](Kind kind, const Tensor& got) {
        EXPECT_EQ(got.shape(), shape);
        expect_near_rows(got.to_vector<T>(), naive<T>(kind, data, ids, 6, true));
      };
      check(Kind::sum, math::segment_sum(data, id));
      check(Kind::mean, math::segment_mean(data, id));
      check(Kind::prod, math::segment_prod(data, id));
      if constexpr (!is_complex_number<T>) {
        check(Kind::max, math::segment_max(data, id));
        check(Kind::min, math::segment_min(data, id));
      }
    }
  });
}

TEST(Segment, UnsortedMatchesLoopsForEveryDtype) {
  const std::vector<int64_t> ids{3, 0, -1, 3, 1, 0};
  numbers.for_each([&]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const Tensor data = counting<T>({6, 2, 2});
    const Tensor id = Tensor::of<int64_t>(ids);
    auto check = [&](Kind kind, const Tensor& got) {
      EXPECT_EQ(got.shape(), (Shape{5, 2, 2}));
      expect_near_rows(got.to_vector<T>(), naive<T>(kind, data, ids, 5, false));
    };
    check(Kind::sum, math::unsorted_segment_sum(data, id, 5));
    check(Kind::prod, math::unsorted_segment_prod(data, id, 5));
    if constexpr (!is_complex_number<T>) {
      check(Kind::max, math::unsorted_segment_max(data, id, 5));
      check(Kind::min, math::unsorted_segment_min(data, id, 5));
    }
    if constexpr (std::is_floating_point_v<T> || HalfFloat<T>) {
      check(Kind::mean, math::unsorted_segment_mean(data, id, 5));
    }
  });
}

TEST(Segment, IdsOfSeveralDimensions) {
  const Tensor data{{{1.f, 2.f}, {3.f, 4.f}}, {{5.f, 6.f}, {7.f, 8.f}}};
  const Tensor ids{{1, 0}, {1, -1}};
  EXPECT_EQ(math::unsorted_segment_sum(data, ids, 2).to_vector<float>(), (std::vector<float>{3, 4, 6, 8}));
  EXPECT_EQ(math::unsorted_segment_mean(data, ids, 2).to_vector<float>(), (std::vector<float>{3, 4, 3, 4}));
  const auto root = math::unsorted_segment_sqrt_n(data, ids, 2).to_vector<float>();
  EXPECT_FLOAT_EQ(root[2], 6 / std::sqrt(2.f));
  EXPECT_FLOAT_EQ(root[0], 3);
}

TEST(Segment, EmptyTensors) {
  const Tensor none = Tensor::empty(DType::float32, {0, 3});
  const Tensor ids = Tensor::empty(DType::int32, {0});
  EXPECT_EQ(math::segment_sum(none, ids).shape(), (Shape{0, 3}));
  EXPECT_EQ(math::unsorted_segment_sum(none, ids, 2).to_vector<float>(), std::vector<float>(6, 0.f));
  EXPECT_EQ(math::unsorted_segment_prod(none, ids, 1).to_vector<float>(), std::vector<float>(3, 1.f));
  EXPECT_EQ(math::unsorted_segment_sum(Tensor{1.f}, Tensor{-1}, 0).shape(), Shape{0});
}

TEST(Segment, Errors) {
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}};
  expect_error(
      [&] {
        math::segment_sum(x, Tensor{1, 0});
      },
      Code::invalid_argument, "[SegmentSum] segment_ids are not sorted");
  expect_error([&] { math::segment_mean(x, Tensor{-1, 0}); }, Code::invalid_argument, "negative");
  expect_error([&] { math::segment_max(x, Tensor{0, 0, 0}); }, Code::invalid_argument, "do not fit");
  expect_error([&] { math::segment_max(x, Tensor{{0, 0}}); }, Code::invalid_argument, "rank 1");
  expect_error([&] { math::segment_min(x, Tensor{0.f, 1.f}); }, Code::invalid_argument, "segment_ids");
  expect_error(
      [&] {
        math::unsorted_segment_sum(x, Tensor{0, 2}, 2);
      },
      Code::invalid_argument, "segment_ids[1] = 2 is not below num_segments 2");
  expect_error([&] { math::unsorted_segment_max(x, Tensor{0, 1}, -1); }, Code::invalid_argument, "num_segments is -1");
  expect_error([&] { math::unsorted_segment_min(x, Tensor{{0, 1, 1}}, 2); }, Code::invalid_argument, "do not fit");
}

TEST(Segment, SharesTheGradientAmongTies) {
  GradientTape tape;
  const Tensor x{{1.f, 5.f}, {1.f, 4.f}, {0.f, 5.f}};
  tape.watch(x);
  const Tensor y = math::unsorted_segment_max(x, Tensor{0, 0, 0}, 2);
  const Tensor dx = tape.gradient(y, x);
  EXPECT_EQ(dx.to_vector<float>(), (std::vector<float>{0.5f, 0.5f, 0.5f, 0, 0, 0.5f}));
}

TEST(Segment, GradientOfProductsWithZeros) {
  auto gradient = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = math::segment_prod(x, Tensor{0, 0, 0, 1, 1});
    return Tensor(tape.gradient(y, x)).to_vector<float>();
  };
  EXPECT_EQ(gradient(Tensor{2.f, 0.f, 3.f, 4.f, 5.f}), (std::vector<float>{0, 6, 0, 5, 4}));
  EXPECT_EQ(gradient(Tensor{0.f, 0.f, 3.f, 0.f, 5.f}), (std::vector<float>{0, 0, 0, 5, 0}));
}

TEST(Segment, SameBitsWithOneAndTwoThreads) {
  std::vector<int64_t> ids;
  Tensor x = Tensor::empty(DType::float32, {50000, 20});
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    x.mutable_data<float>()[i] = std::sin(static_cast<float>(i));
  }
  for (int64_t i = 0; i < 50000; ++i) ids.push_back(i * 7919 % 1000);
  const int before = num_threads();
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    results.push_back(math::unsorted_segment_sum(x, Tensor::of<int64_t>(ids), 1000).to_vector<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace runnel
