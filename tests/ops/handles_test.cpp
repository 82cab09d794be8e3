// Ops that move elements move handles too: of variables and of lists.
#include <gtest/gtest.h>

#include <vector>

#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/partition.h"
#include "runnel/ops/state.h"
#include "runnel/ops/tensor_list.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

float value_of(const Tensor& handle) { return Variable::from_handle(handle).value().item<float>(); }

TEST(Handles, AreMovedLikeOtherElements) {
  const Variable one(Tensor(1.f)), two(Tensor(2.f));
  const Tensor a = one.handle(), b = two.handle();
  const Tensor chosen = where(Tensor{true, false, true}, a, b);
  ASSERT_EQ(chosen.shape(), Shape{3});
  EXPECT_EQ(value_of(chosen[0]), 1);
  EXPECT_EQ(value_of(chosen[1]), 2);
  EXPECT_EQ(value_of(roll(chosen, 1, 0)[2]), 2);
  EXPECT_EQ(value_of(tile(chosen, {2})[4]), 2);
  EXPECT_EQ(value_of(fill({2}, b)[1]), 2);
  EXPECT_EQ(value_of(broadcast_to(chosen, {2, 3})[1][1]), 2);
  EXPECT_EQ(value_of(dynamic_partition(chosen, Tensor{0, 1, 0}, 2)[1][0]), 2);
  EXPECT_EQ(value_of(one_hot(Tensor{1}, 2, a, b)[0][1]), 1);
}

TEST(Handles, RowsOfAVariableInBatches) {
  const Variable v(Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const auto rows = [&](const Tensor& indices, int64_t batch_dims) {
    return call_op("ResourceGather", {v.handle(), indices}, {{"dtype", DType::float32}, {"batch_dims", batch_dims}})[0];
  };
  EXPECT_EQ(rows(Tensor{{2, 0}, {1, 1}}, 1).to_vector<float>(), (std::vector<float>{3, 1, 5, 5}));
  EXPECT_EQ(rows(Tensor{1}, 0).to_vector<float>(), (std::vector<float>{4, 5, 6}));
  test::expect_error([&] { rows(Tensor{1}, 2); }, Code::invalid_argument, "2 batch_dims for indices [1]");
}

TEST(Handles, ListsAreChosenAndStitched) {
  const Tensor a = list_ops::from_tensor(Tensor{1.f, 2.f}, Tensor::of<int32_t>({}));
  const Tensor b = list_ops::from_tensor(Tensor{3.f}, Tensor::of<int32_t>({}));
  const Tensor chosen = where(Tensor{false, true}, a, b);
  EXPECT_EQ(list_ops::length(chosen[0]).item<int32_t>(), 1);
  EXPECT_EQ(list_ops::length(chosen[1]).item<int32_t>(), 2);
  const Tensor stitched = dynamic_stitch({Tensor{1}, Tensor{0}}, {reshape(a, {1}), reshape(b, {1})});
  EXPECT_EQ(list_ops::length(stitched[0]).item<int32_t>(), 1);
}

}  // namespace
}  // namespace runnel
