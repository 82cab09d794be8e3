// Sizes of shapes in braces, of which some may be tensors.
#include <gtest/gtest.h>

#include <concepts>

#include "runnel/runnel.h"
#include "tests/support/caller_lines.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(SizeList, MayHoldTensors) {
  const Tensor x = zeros({2, 3});
  const Tensor n(5);
  EXPECT_EQ(zeros({shape(x)[0], 4}).shape(), (Shape{2, 4}));
  EXPECT_EQ(zeros({n}).shape(), (Shape{5}));  // one size, not a copy of a shape
  EXPECT_EQ(ones({n, n}, int32).shape(), (Shape{5, 5}));
  EXPECT_EQ(zeros({constant(2, int64), n}).shape(), (Shape{2, 5}));
  EXPECT_EQ(reshape(x, {shape(x)[1], -1}).shape(), (Shape{3, 2}));
  EXPECT_EQ(zeros({2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(zeros({}).shape(), Shape());
  EXPECT_EQ(zeros(shape(x)).shape(), (Shape{2, 3}));
  EXPECT_EQ(zeros({shape(x)}).shape(), (Shape{2, 3}));  // a vector alone is all sizes
  EXPECT_EQ(reshape(x, {constant({3, 2}, int64)}).shape(), (Shape{3, 2}));
  EXPECT_EQ(reshape(x, {Variable(Tensor{3, 2})}).shape(), (Shape{3, 2}));
  static_assert(!std::constructible_from<ShapeSize, double>);
}

TEST(SizeList, IsKnownInPartWhileTraced) {
  PartialShape known;
  auto f = function(
      [&](const Tensor& x) {
        const Tensor y = zeros({shape(x)[0], 4});
        known = y.partial_shape();
        return y;
      },
      {.input_signature = {{PartialShape{kUnknownDim, 3}, float32}}});
  EXPECT_EQ(f(zeros({7, 3})).shape(), (Shape{7, 4}));
  EXPECT_EQ(known, (PartialShape{kUnknownDim, 4}));
}

TEST(SizeList, TakesIntegerScalars) {
  const Tensor vector{2, 3};
  EXPECT_NAMES_THIS_LINE(zeros({vector, 1}));
  EXPECT_NAMES_THIS_LINE(zeros({Tensor{2.5}}));
  EXPECT_NAMES_THIS_LINE(zeros({Tensor{{2, 3}}}));
  EXPECT_NAMES_THIS_LINE(zeros({Tensor(2.5), 1}));
  EXPECT_NAMES_THIS_LINE(zeros({Tensor(), 1}));
  expect_error(
      [&] {
        zeros({vector, 1});
      },
      Code::invalid_argument, "a tensor in a list of sizes must be a scalar of dtype int32 or int64, got int32[2]");
}

}  // namespace
}  // namespace runnel
