#include "runnel/ops/tensor_array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runnel/ops/tensor_list.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

TEST(TensorArray, ReadsWhatWasWritten) {
  TensorArray ta(float32, 3);
  for (int i = 0; i < 3; ++i) ta = ta.write(i, static_cast<float>(i));
  std::ostringstream text;
  text << ta.read(0) << ' ' << ta.read(1) << ' ' << ta.read(2);
  EXPECT_EQ(text.str(),
            "tf.Tensor(0.0, shape=(), dtype=float32) tf.Tensor(1.0, shape=(), dtype=float32) "
            "tf.Tensor(2.0, shape=(), dtype=float32)");
  EXPECT_EQ(ta.read(1).item<float>(), 1) << "a read clears nothing";
  EXPECT_EQ(ta.size().item<int32_t>(), 3);
  EXPECT_EQ(ta.element_shape(), PartialShape{});
}

TEST(TensorArray, IsAValue) {
  const TensorArray a = TensorArray(float32, 2).write(0, 1);
  const TensorArray b = a.write(0, 2).write(1, 3);
  EXPECT_THAT(a.stack().to_vector<float>(), ElementsAre(1, 0));
  EXPECT_THAT(b.stack().to_vector<float>(), ElementsAre(2, 3));
}

TEST(TensorArray, AnIndexMayBeATensor) {
  TensorArray ta(int32, Tensor(2));
  ta = ta.write(Tensor(1), 5).write(constant(0, int64), 4);
  EXPECT_THAT(ta.stack().to_vector<int32_t>(), ElementsAre(4, 5));
  EXPECT_EQ(ta.read(constant(1, int64)).item<int32_t>(), 5);
}

TEST(TensorArray, GrowsOnlyWhenDynamic) {
  TensorArray ta(float32, 0, {.dynamic_size = true, .name = "losses"});
  for (int i = 0; i < 4; ++i) ta = ta.write(i, 2.f * static_cast<float>(i));
  EXPECT_THAT(ta.stack().to_vector<float>(), ElementsAre(0, 2, 4, 6));
  expect_error([&] { (void)ta.write(-1, 1.f); }, Code::out_of_range,
               "[TensorArray] 'losses'.write: index -1 is out of range: the array has size 4");
  const TensorArray fixed(float32, 3, {.name = "states"});
  expect_error([&] { (void)fixed.write(3, 1.f); }, Code::out_of_range,
               "[TensorArray] 'states'.write: index 3 is out of range: the array has size 3 (at ");
  expect_error([&] { fixed.read(7); }, Code::out_of_range,
               "[TensorArray] 'states'.read: index 7 is out of range: the array has size 3");
  expect_error([&] { fixed.gather({0, 5}); }, Code::out_of_range, "'states'.gather: index 5");
  expect_error([&] { (void)fixed.scatter({5}, {1.f}); }, Code::out_of_range, "'states'.scatter: index 5");
  expect_error(
      [&] {
        (void)fixed.unstack({1.f, 2.f});
      },
      Code::invalid_argument, "'states'.unstack: 2 elements for an array of size 3");
}

TEST(TensorArray, ReadsZerosWhereNothingWasWritten) {
  const TensorArray known(float32, 2, {.element_shape = {2}});
  EXPECT_THAT(known.read(1).to_vector<float>(), ElementsAre(0, 0));
  EXPECT_EQ(known.stack().shape(), (Shape{2, 2}));
  expect_error([&] { TensorArray(float32, 2).read(1); }, Code::invalid_argument, "item 1 was never written");
}

TEST(TensorArray, StacksAndUnstacks) {
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}};
  const TensorArray ta = TensorArray(float32, 3).unstack(x);
  EXPECT_THAT(ta.read(1).to_vector<float>(), ElementsAre(3, 4));
  EXPECT_EQ(ta.element_shape(), PartialShape{2});
  EXPECT_THAT(ta.stack().to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ta.gather({2, 0}).to_vector<float>(), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(ta.scatter({0, 2}, {{7.f, 8.f}, {9.f, 0.f}}).stack().to_vector<float>(), ElementsAre(7, 8, 3, 4, 9, 0));
}

TEST(TensorArray, JoinsAndSplits) {
  const TensorArray ta = TensorArray(float32, 2, {.infer_shape = false}).split({1.f, 2.f, 3.f}, {1, 2});
  EXPECT_THAT(ta.read(1).to_vector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(ta.concat().to_vector<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(ta.size().item<int32_t>(), 2);
}

TEST(TensorArray, ChecksWhatIsWritten) {
  const TensorArray ta = TensorArray(float32, 3, {.name = "h"}).write(0, Tensor{1.f, 2.f});
  expect_error(
      [&] {
        (void)ta.write(1, Tensor{1.f, 2.f, 3.f});
      },
      Code::invalid_argument, "[TensorArray] 'h'.write: an element of shape [3] does not fit the others, of shape [2]");
  expect_error([&] { (void)ta.write(1, Tensor{1, 2}); }, Code::invalid_argument, "the array holds float32, got int32");
  const TensorArray loose = TensorArray(float32, 2, {.infer_shape = false}).write(0, Tensor{1.f}).write(1, 2.f);
  EXPECT_EQ(loose.read(0).shape(), Shape{1});
  expect_error([] { TensorArray().read(0); }, Code::failed_precondition, "was never made");
}

TEST(TensorArray, HoldsStringsAndBools) {
  TensorArray words(DType::string, 2);
  words = words.write(0, "a").write(1, "bc");
  EXPECT_THAT(words.stack().to_vector<std::string>(), ElementsAre("a", "bc"));
  EXPECT_TRUE(TensorArray(bool_, 1).write(0, true).read(0).item<bool>());
}

TEST(TensorArray, IsAPartOfStructures) {
  const TensorArray ta = TensorArray(float32, 2).write(0, 1.f);
  const Nest n = std::tuple{Tensor(1), ta};
  const std::vector<Tensor> leaves = nest::flatten(n);
  ASSERT_EQ(leaves.size(), 2u);
  EXPECT_EQ(leaves[1].dtype(), DType::variant);
  EXPECT_EQ(nest::paths(n)[1], "[1][0]");
  const auto back = nest::pack(n, leaves).as<std::tuple<Tensor, TensorArray>>();
  EXPECT_THAT(std::get<1>(back).stack().to_vector<float>(), ElementsAre(1, 0));
  EXPECT_EQ(std::get<1>(back).element_shape(), PartialShape{});
  nest::assert_same_structure(n, Nest(std::tuple{Tensor(1), ta.write(1, 2.f)}));
  expect_error(
      [&] {
        nest::assert_same_structure(n, Nest(std::tuple{Tensor(1), TensorArray(int32, 2)}));
      },
      Code::invalid_argument, "structures differ at [1]: a TensorArray of float32 and a TensorArray of int32");
  expect_error([&] { Nest(Tensor(1)).as<TensorArray>(); }, Code::invalid_argument, "a composite asked of a leaf");
}

TEST(TensorArray, IsDifferentiable) {
  const Tensor x{1.f, 2.f, 3.f};
  GradientTape tape;
  tape.watch(x);
  TensorArray ta = TensorArray(float32, 3).unstack(x);
  for (int i = 1; i < 3; ++i) ta = ta.write(i, ta.read(i) * ta.read(i - 1));  // x0, x0 x1, x0 x1 x2
  const Tensor y = reduce_sum(ta.stack()) + ta.read(2);
  EXPECT_EQ(y.item<float>(), 1 + 2 + 6 + 6);
  EXPECT_THAT(tape.gradient(y, x).value().to_vector<float>(), ElementsAre(1 + 2 + 12, 1 + 6, 4));
}

TEST(TensorArray, ALoopOfWritesNeverCopies) {
  const int64_t before = TensorList::num_copies();
  TensorArray ta(float32, 0, {.dynamic_size = true});
  for (int i = 0; i < 3000; ++i) ta = ta.write(i, static_cast<float>(i));
  EXPECT_EQ(ta.read(2999).item<float>(), 2999);
  EXPECT_EQ(TensorList::num_copies(), before);
}

}  // namespace
}  // namespace runnel
