#include "runnel/op/random_context.h"

#include <gtest/gtest.h>

#include "runnel/function/function.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/random.h"

namespace runnel {
namespace {

std::vector<float> drawn(int64_t op_seed) {
  return random::uniform({3}, 0, 1, DType::float32, op_seed).to_vector<float>();
}

TEST(RandomContextTest, TheStateHasTheStreamsOfOpsToo) {
  RandomContext context(7);
  const RandomScope scope(context);
  drawn(0);
  drawn(3);
  drawn(3);
  drawn(4);
  const RandomContext::State state = context.state();
  const std::vector<std::vector<float>> next{drawn(0), drawn(3), drawn(4), drawn(5)};
  EXPECT_FALSE(context.state() == state);
  context.restore(state);
  EXPECT_TRUE(context.state() == state);
  EXPECT_EQ(drawn(0), next[0]);
  EXPECT_EQ(drawn(3), next[1]);
  EXPECT_EQ(drawn(4), next[2]);
  EXPECT_EQ(drawn(5), next[3]);
  RandomContext other(1);
  other.restore(state);
  const RandomScope inner(other);
  EXPECT_EQ(drawn(3), next[1]);
}

TEST(RandomContextTest, ResetForgetsTheStreamsOfOps) {
  RandomContext context(7);
  const RandomScope scope(context);
  const std::vector<float> first = drawn(3);
  context.reset(7);
  EXPECT_EQ(drawn(3), first);
}

TEST(RandomContextTest, ACheckedFunctionDrawsTheSameTwice) {
  RandomContext context(7);
  const RandomScope scope(context);
  drawn(3);
  auto f = function([](const Tensor& x) { return x + random::uniform({3}, 0, 1, DType::float32, 3); });
  check_tracing(true);
  EXPECT_NO_THROW(f(Tensor(1.f)));
  EXPECT_NO_THROW(f(Tensor(1.f)));
  check_tracing(false);
}

}  // namespace
}  // namespace runnel
