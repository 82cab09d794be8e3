#include <cstring>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/movement.h"

namespace runnel {
namespace {

using test::expect_error;

// Python's positions of a slice over n elements.
std::vector<int64_t> python_slice(const Slice& s, int64_t n) {
  std::vector<int64_t> at;
  auto resolved = [&](int64_t v) { return v < 0 ? v + n : v; };
  if (s.step > 0) {
    int64_t i = s.start ? std::max<int64_t>(resolved(*s.start), 0) : 0;
    const int64_t stop = s.stop ? std::min(resolved(*s.stop), n) : n;
    for (; i < stop; i += s.step) at.push_back(i);
  } else {
    int64_t i = s.start ? std::min(resolved(*s.start), n - 1) : n - 1;
    const int64_t stop = s.stop ? std::max<int64_t>(resolved(*s.stop), -1) : -1;
    for (; i > stop; i += s.step) at.push_back(i);
  }
  return at;
}

TEST(Index, SlicesAsPythonDoes) {
  const std::vector<std::optional<int64_t>> bounds = {std::nullopt, -9, -7, -3, -1, 0, 1, 3, 6, 7, 12};
  for (int64_t n : {0, 1, 7}) {
    const Tensor x = numbered(int32, {n});
    for (const auto& start : bounds) {
      for (const auto& stop : bounds) {
        for (int64_t step : {1, 2, 3, 10, -1, -2, -5}) {
          const Slice s{start, stop, step};
          std::vector<int32_t> expected;
          for (int64_t i : python_slice(s, n)) expected.push_back(static_cast<int32_t>(i + 1));
          ASSERT_EQ(x(s).to_vector<int32_t>(), expected)
              << n << ": " << start.value_or(99) << ":" << stop.value_or(99) << ":" << step;
        }
      }
    }
  }
}

TEST(Index, CombinesPositionsSlicesNewAxesAndEllipsis) {
  const Shape shape{3, 4, 5};
  auto at = [&](int64_t i, int64_t j, int64_t k) { return ravel({i, j, k}, shape); };
  expect_moved([](const Tensor& x) { return x[1]; }, shape, {4, 5}, [&](const Dims& i) { return at(1, i[0], i[1]); });
  expect_moved([](const Tensor& x) { return x[-1]; }, shape, {4, 5}, [&](const Dims& i) { return at(2, i[0], i[1]); });
  expect_moved([](const Tensor& x) { return x(all, slice(0, 2)); }, shape, {3, 2, 5},
               [&](const Dims& i) { return at(i[0], i[1], i[2]); });
  expect_moved([](const Tensor& x) { return x(ellipsis, -1); }, shape, {3, 4},
               [&](const Dims& i) { return at(i[0], i[1], 4); });
  expect_moved([](const Tensor& x) { return x(1, ellipsis, newaxis, slice(none, none, -2)); }, shape, {4, 1, 3},
               [&](const Dims& i) { return at(1, i[0], 4 - 2 * i[2]); });
  expect_moved([](const Tensor& x) { return x(slice(2, none, -1), 3, slice(1, 4)); }, shape, {3, 3},
               [&](const Dims& i) { return at(2 - i[0], 3, 1 + i[1]); });
  expect_moved([](const Tensor& x) { return x(newaxis, ellipsis, newaxis); }, shape, {1, 3, 4, 5, 1},
               [&](const Dims& i) { return at(i[1], i[2], i[3]); });
  expect_moved([](const Tensor& x) { return x(2, 3, 4); }, shape, {}, [&](const Dims&) { return at(2, 3, 4); });
  expect_moved([](const Tensor& x) { return x(slice(2, 1)); }, shape, {0, 4, 5}, [](const Dims&) { return kZero; });
}

TEST(Index, LeadingRangesShareTheBuffer) {
  const Tensor x = numbered(float32, {5, 4});
  EXPECT_EQ(x[2].raw(), x.data<float>() + 8);
  EXPECT_EQ(x(slice(1, 3)).raw(), x.data<float>() + 4);
  EXPECT_EQ(x(slice(1, 3), newaxis).raw(), x.data<float>() + 4);
  EXPECT_NE(x(all, 1).impl()->buffer.get(), x.impl()->buffer.get());
  EXPECT_EQ(unstack(x)[3].raw(), x.data<float>() + 12);
  EXPECT_EQ(split(x, {2, 3})[1].raw(), x.data<float>() + 8);
}

TEST(Index, NamesTheIndexAndTheSize) {
  const Tensor x = numbered(float32, {2, 3});
  expect_error([&] { x[2]; }, Code::out_of_range, "[StridedSlice] index 2 is out of range for dimension 0 of size 2");
  expect_error([&] { x(0, -4); }, Code::out_of_range, "index -4 is out of range for dimension 1 of size 3");
  expect_error([&] { x(0, 0, 0); }, Code::invalid_argument, "3 indices for a tensor of rank 2");
  expect_error([&] { x(ellipsis, ellipsis); }, Code::invalid_argument, "more than one ellipsis");
  expect_error([&] { Tensor(1.f)[0]; }, Code::invalid_argument, "1 indices for a tensor of rank 0");
}

TEST(Slice, TakesABox) {
  const Shape shape{4, 5, 6};
  expect_moved(
      [](const Tensor& x) {
        return slice(x, {1, 0, 2}, {2, -1, 3});
      },
      shape, {2, 5, 3},
      [&](const Dims& i) {
        return ravel({i[0] + 1, i[1], i[2] + 2}, shape);
      });
  expect_moved(
      [](const Tensor& x) {
        return slice(x, {1, 0, 0}, {2, 5, -1});
      },
      shape, {2, 5, 6},
      [&](const Dims& i) {
        return ravel({i[0] + 1, i[1], i[2]}, shape);
      });
  expect_error([] { slice(numbered(float32, {3}), {1}, {3}); }, Code::invalid_argument,
               "[Slice] begin 1 and size 3 do not lie within dimension 0 of size 3");
}

TEST(Slice, GradientsFillWithZeros) {
  const Tensor x = numbered(float64, {4, 3});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor a = x(slice(none, none, -2), 1);
  const Tensor b = slice(x, {1, 1}, {2, 2});
  const Tensor da = tape.gradient(a, x, Tensor::of<double>({5, 7}));
  EXPECT_EQ(da.to_vector<double>(), (std::vector<double>{0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 5, 0}));
  const Tensor db = tape.gradient(b, x);
  EXPECT_EQ(db.to_vector<double>(), (std::vector<double>{0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0}));
}

TEST(Slice, SameBitsWithThreads) {
  const Tensor x = numbered(float32, {50, 40, 60});
  expect_same_with_threads([&] { return x(slice(none, none, -1), slice(3, none, 2)); });
  expect_same_with_threads([&] { return x(all, all, slice(1, 50)); });
}

}  // namespace
}  // namespace runnel
