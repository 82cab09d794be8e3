#include <cstring>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/movement.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(Pad, PutsZerosAround) {
  const Shape shape{2, 3, 2};
  expect_moved(
      [](const Tensor& x) {
        return pad(x, {{1, 2}, {0, 1}, {3, 0}});
      },
      shape, {5, 4, 5},
      [&](const Dims& i) {
        const Dims at{i[0] - 1, i[1], i[2] - 3};
        for (int d = 0; d < 3; ++d) {
          if (at[static_cast<size_t>(d)] < 0 || at[static_cast<size_t>(d)] >= shape[d]) return kZero;
        }
        return ravel(at, shape);
      });
  expect_moved(
      [](const Tensor& x) {
        return pad(x, {{0, 0}, {0, 0}});
      },
      {2, 2}, {2, 2}, [](const Dims& i) { return i[0] * 2 + i[1]; });
  expect_moved(
      [](const Tensor& x) {
        return pad(x, {{1, 1}, {0, 0}});
      },
      {0, 2}, {2, 2}, [](const Dims&) { return kZero; });
}

TEST(Pad, WithAValue) {
  EXPECT_EQ(pad(Tensor{1, 2}, {{1, 2}}, "CONSTANT", 7).to_vector<int32_t>(), (std::vector<int32_t>{7, 1, 2, 7, 7}));
  EXPECT_EQ(pad(Tensor{"a"}, {{1, 0}}, "constant", "z").to_vector<std::string>(), (std::vector<std::string>{"z", "a"}));
  EXPECT_EQ(pad(Tensor(5.f), zeros({0, 2}, int32)).to_vector<float>(), (std::vector<float>{5}));
}

TEST(MirrorPad, ReflectsEveryDtype) {
  auto mirrored = [](int64_t i, int64_t lo, int64_t n, int64_t offset) {
    i -= lo;
    if (i < 0) i = -i - 1 + offset;
    if (i >= n) i = 2 * n - 1 - i - offset;
    return i;
  };
  for (const bool reflect : {true, false}) {
    const Shape shape{4, 3};
    expect_moved(
        [&](const Tensor& x) {
          return pad(x, {{2, 3}, {1, 2}}, reflect ? "REFLECT" : "SYMMETRIC");
        },
        shape, {9, 6},
        [&](const Dims& i) {
          return ravel({mirrored(i[0], 2, 4, reflect), mirrored(i[1], 1, 3, reflect)}, shape);
        });
  }
}

TEST(MirrorPad, GradientIsTheTransposeOfTheMap) {
  const Tensor x = numbered(float64, {3, 4});
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = pad(x, {{2, 1}, {0, 3}}, mode);
    const Tensor weights = numbered(float64, y.shape(), 5);
    const Tensor which = pad(reshape(range(int64_t{12}), {3, 4}), {{2, 1}, {0, 3}}, mode);
    std::vector<double> expected(12, 0);
    for (int64_t k = 0; k < y.num_elements(); ++k) {
      expected[static_cast<size_t>(which.data<int64_t>()[k])] += weights.data<double>()[k];
    }
    EXPECT_EQ(tape.gradient(y, x, weights).value().to_vector<double>(), expected);
  }
}

TEST(Pad, SaysWhatIsWrong) {
  const Tensor x = numbered(float32, {2, 3});
  expect_error(
      [&] {
        pad(x, {{1, 1}});
      },
      Code::invalid_argument, "[Pad] paddings of shape [1,2] for a tensor of rank 2");
  expect_error([&] { pad(x, {{1, -1}, {0, 0}}); }, Code::invalid_argument, "a padding is negative");
  expect_error(
      [&] {
        pad(x, {{2, 0}, {0, 0}}, "REFLECT");
      },
      Code::invalid_argument, "must not exceed 1: its size is 2");
  expect_error([&] { pad(x, {{0, 0}, {0, 0}}, "WRAP"); }, Code::invalid_argument, "attr 'mode' of \"WRAP\"");
}

TEST(Tile, Repeats) {
  const Shape shape{2, 3};
  expect_moved(
      [](const Tensor& x) {
        return tile(x, {3, 2});
      },
      shape, {6, 6},
      [&](const Dims& i) {
        return ravel({i[0] % 2, i[1] % 3}, shape);
      });
  expect_moved([](const Tensor& x) { return tile(x, {1, 0}); }, shape, {2, 0}, [](const Dims&) { return kZero; });
  expect_moved([](const Tensor& x) { return tile(x, zeros({0}, int32)); }, {}, {}, [](const Dims&) { return 0; });
  expect_error([] { tile(zeros({2}), {1, 2}); }, Code::invalid_argument, "[Tile] 2 multiples for a tensor of rank 1");
}

TEST(BroadcastTo, StretchesEveryDtype) {
  expect_moved(
      [](const Tensor& x) {
        return broadcast_to(x, {4, 2, 3});
      },
      {2, 1}, {4, 2, 3}, [](const Dims& i) { return i[1]; });
  expect_error([] { broadcast_to(zeros({3}), {-1}); }, Code::invalid_argument, "a size is negative: [-1]");
}

TEST(Pad, SameBitsWithThreads) {
  const Tensor x = numbered(float32, {30, 40, 50});
  expect_same_with_threads([&] { return pad(x, {{1, 1}, {2, 2}, {3, 3}}); });
  expect_same_with_threads([&] { return pad(x, {{1, 1}, {2, 2}, {3, 3}}, "SYMMETRIC"); });
  expect_same_with_threads([&] { return tile(x, {2, 1, 3}); });
}

}  // namespace
}  // namespace runnel
