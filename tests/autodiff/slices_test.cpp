// Gradients that are rows of a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runnel/autodiff/tape.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

using ::testing::ElementsAre;

Tensor table() { return Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}; }

TEST(SlicesTest, AGatherGivesRows) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor y = gather(x, Tensor{2, 0, 2});
  const Gradient g = tape.gradient(y * 10.f, x);
  ASSERT_TRUE(g.is_slices());
  EXPECT_EQ(g.slices().values.shape(), (Shape{3, 2}));
  EXPECT_THAT(g.slices().indices.to_vector<int32_t>(), ElementsAre(2, 0, 2));
  EXPECT_FALSE(g.dense().defined());
  const Tensor dense = g;  // repeated rows add up
  EXPECT_EQ(dense.shape(), x.shape());
  EXPECT_THAT(dense.to_vector<float>(), ElementsAre(10, 10, 0, 0, 20, 20));
}

TEST(SlicesTest, RowsAccumulateAsRows) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor y = reduce_sum(gather(x, Tensor{0, 1})) + reduce_sum(gather(x, Tensor{1}) * 5.f);
  const Gradient g = tape.gradient(y, x);
  ASSERT_TRUE(g.is_slices());
  EXPECT_EQ(g.slices().values.shape(), (Shape{3, 2}));
  EXPECT_THAT(g.value().to_vector<float>(), ElementsAre(1, 1, 6, 6, 0, 0));
}

TEST(SlicesTest, IndicesOfBothIntegerTypes) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor y = reduce_sum(gather(x, Tensor{0})) + reduce_sum(gather(x, Tensor{int64_t{2}}));
  EXPECT_THAT(tape.gradient(y, x).value().to_vector<float>(), ElementsAre(1, 1, 0, 0, 1, 1));
}

TEST(SlicesTest, RowsAndDenseMakeDense) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor y = reduce_sum(gather(x, Tensor{0})) + reduce_sum(x * 2.f);
  const Gradient g = tape.gradient(y, x);
  EXPECT_FALSE(g.is_slices());
  EXPECT_THAT(g.value().to_vector<float>(), ElementsAre(3, 3, 2, 2, 2, 2));
}

TEST(SlicesTest, OfAVariable) {
  const Variable v(table());
  GradientTape tape;
  const Gradient g = tape.gradient(gather(v, Tensor{1}), v);
  ASSERT_TRUE(g.is_slices());
  EXPECT_THAT(g.value().to_vector<float>(), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(SlicesTest, ThroughAnOpThatNeedsThemDense) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor squared = x * x;
  EXPECT_THAT(tape.gradient(gather(squared, Tensor{2}), x).value().to_vector<float>(), ElementsAre(0, 0, 0, 0, 10, 12));
}

TEST(SlicesTest, SecondOrder) {
  const Tensor x = table();
  GradientTape outer;
  outer.watch(x);
  Tensor dx;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor rows = gather(x, Tensor{2, 0});
    dx = inner.gradient(rows * rows * rows, x);
  }
  EXPECT_THAT(dx.to_vector<float>(), ElementsAre(3, 12, 0, 0, 75, 108));
  EXPECT_THAT(outer.gradient(dx, x).value().to_vector<float>(), ElementsAre(6, 12, 0, 0, 30, 36));
}

}  // namespace
}  // namespace runnel
