#include <cstring>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/movement.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(Concat, OfNothingSaysSo) {
  const std::vector<Tensor> none;
  test::expect_error([&] { concat(none, 0); }, Code::invalid_argument, "[concat] there is nothing to join");
  test::expect_error([&] { concat(none, 0); }, Code::invalid_argument, "array_join_test.cpp:");
}

TEST(Concat, JoinsAlongEveryAxis) {
  const Shape shape{2, 6, 3};
  for (int axis : {0, 1, 2, -1, -3}) {
    const int d = axis < 0 ? axis + 3 : axis;
    Dims to = shape.dims();
    to[static_cast<size_t>(d)] *= 3;
    expect_moved(
        [&](const Tensor& x) {
          return concat({x, x, x}, axis);
        },
        shape, Shape(to),
        [&](Dims i) {
          i[static_cast<size_t>(d)] %= shape[d];
          return ravel(i, shape);
        });
  }
  EXPECT_EQ(concat({Tensor{1.f}, zeros({0}), Tensor{2.f}}, 0).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(concat({zeros({0, 2}), zeros({0, 3})}, 1).shape().str(), "[0,5]");
}

TEST(Stack, JoinsAlongANewAxis) {
  const Shape shape{2, 3};
  for (int axis : {0, 1, 2, -1}) {
    const int d = axis < 0 ? axis + 3 : axis;
    Dims to = shape.dims();
    to.insert(to.begin() + d, 4);
    expect_moved(
        [&](const Tensor& x) {
          return stack({x, x, x, x}, axis);
        },
        shape, Shape(to),
        [&](Dims i) {
          i.erase(i.begin() + d);
          return ravel(i, shape);
        });
  }
  EXPECT_EQ(stack({1.f, 2.f}).to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Unstack, TakesSlicesApart) {
  const Shape shape{2, 3, 4};
  for (int axis : {0, 1, 2, -1, -2}) {
    const int d = axis < 0 ? axis + 3 : axis;
    Dims to = shape.dims();
    to.erase(to.begin() + d);
    for (int64_t k = 0; k < shape[d]; ++k) {
      expect_moved([&](const Tensor& x) { return unstack(x, axis)[static_cast<size_t>(k)]; }, shape, Shape(to),
                   [&](Dims i) {
                     i.insert(i.begin() + d, k);
                     return ravel(i, shape);
                   });
    }
  }
  EXPECT_TRUE(unstack(zeros({0, 3})).empty());
  expect_error([] { unstack(Tensor(1.f)); }, Code::invalid_argument, "[Unpack] a scalar cannot be unstacked");
}

TEST(Split, IntoEqualAndGivenParts) {
  const Shape shape{6, 4};
  for (int64_t k = 0; k < 3; ++k) {
    expect_moved([&](const Tensor& x) { return split(x, 3)[static_cast<size_t>(k)]; }, shape, {2, 4},
                 [&](const Dims& i) {
                   return ravel({i[0] + 2 * k, i[1]}, shape);
                 });
  }
  expect_moved(
      [&](const Tensor& x) {
        return split(x, {1, -1}, 1)[1];
      },
      shape, {6, 3},
      [&](const Dims& i) {
        return ravel({i[0], i[1] + 1}, shape);
      });
  expect_moved([&](const Tensor& x) { return split(x, 2, -1)[1]; }, shape, {6, 2},
               [&](const Dims& i) {
                 return ravel({i[0], i[1] + 2}, shape);
               });
  EXPECT_EQ(split(zeros({4, 0}), {1, 3})[1].shape().str(), "[3,0]");
  expect_error([] { split(zeros({4}), 3); }, Code::invalid_argument, "does not split into 3 equal parts");
  expect_error([] { split(zeros({4}), {2, 3}); }, Code::invalid_argument, "add up to 5, the axis has size 4");
  expect_error([] { split(zeros({4}), {-1, -1}); }, Code::invalid_argument, "one may be -1");
}

TEST(Join, GradientsGoBackToTheParts) {
  const Tensor a = numbered(float64, {2, 2}), b = numbered(float64, {2, 1});
  GradientTape tape({.persistent = true});
  tape.watch(a);
  tape.watch(b);
  const Tensor y = concat({a, b, a}, 1);
  const Tensor weights = numbered(float64, {2, 5});
  const auto grads = tape.gradient(y, std::vector<Tensor>{a, b}, weights);
  EXPECT_EQ(grads[0].value().to_vector<double>(), (std::vector<double>{1 + 4, 2 + 5, 6 + 9, 7 + 10}));
  EXPECT_EQ(grads[1].value().to_vector<double>(), (std::vector<double>{3, 8}));
  const auto parts = unstack(a, 1);
  EXPECT_EQ(tape.gradient(parts[1] * parts[1], a).value().to_vector<double>(), (std::vector<double>{0, 4, 0, 8}));
}

TEST(Join, SaysWhatIsWrong) {
  expect_error(
      [] {
        concat({zeros({2, 3}), zeros({3, 3})}, 1);
      },
      Code::invalid_argument, "[ConcatV2] sizes differ outside axis 1: [2,3] and [3,3]");
  expect_error([] { concat({zeros({2}), zeros({2, 1})}, 0); }, Code::invalid_argument, "ranks differ");
  expect_error([] { concat({zeros({2}), zeros({2}, int32)}, 0); }, Code::invalid_argument, "dtype");
  expect_error(
      [] {
        stack({zeros({2}), zeros({3})});
      },
      Code::invalid_argument, "[Pack] shapes [2] and [3] are incompatible");
  expect_error([] { stack(std::vector<Tensor>{}); }, Code::invalid_argument, "attr 'N' of 0");
}

TEST(Join, SameBitsWithThreads) {
  const Tensor x = numbered(float32, {300, 400});
  expect_same_with_threads([&] { return concat({x, x, x}, 1); });
  expect_same_with_threads([&] { return stack({x, x}, 2); });
  expect_same_with_threads([&] { return concat({x, x}, 0); });
}

}  // namespace
}  // namespace runnel
