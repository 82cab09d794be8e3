#include "runnel/autodiff/tape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

std::vector<float> floats(const Gradient& g) { return g.value().to_vector<float>(); }

TEST(GradientTapeTest, AWatchedTensor) {
  const Tensor x{1.f, 2.f, 3.f};
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(floats(tape.gradient(x * x, x)), ElementsAre(2, 4, 6));
}

TEST(GradientTapeTest, WhatIsNotWatchedHasNoGradient) {
  const Tensor x{1.f, 2.f};
  GradientTape tape;
  const Gradient g = tape.gradient(x * x, x);
  EXPECT_FALSE(g.defined());
  expect_error([&] { g.value(); }, Code::failed_precondition, "there is no gradient");
}

TEST(GradientTapeTest, UnconnectedSources) {
  const Tensor x{1.f, 2.f};
  const Tensor other{{5.f}, {6.f}};
  const Variable variable(Tensor{7.f, 8.f, 9.f});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(other);
  const Tensor y = x * x;
  EXPECT_FALSE(tape.gradient(y, other).defined());
  const Tensor zero = tape.gradient(y, other, {}, UnconnectedGradients::zero);
  EXPECT_EQ(zero.shape(), other.shape());
  EXPECT_THAT(zero.to_vector<float>(), ElementsAre(0, 0));
  EXPECT_THAT(floats(tape.gradient(y, variable, {}, UnconnectedGradients::zero)), ElementsAre(0, 0, 0));
}

TEST(GradientTapeTest, ATapeThatIsNotPersistentIsAskedOnce) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  EXPECT_THAT(floats(tape.gradient(y, x)), ElementsAre(4));
  expect_error([&] { tape.gradient(y, x); }, Code::failed_precondition, "asked twice");
  expect_error([&] { tape.jacobian(y, x); }, Code::failed_precondition, "asked twice");
  tape.reset();
  tape.watch(x);
  EXPECT_THAT(floats(tape.gradient(x * x * x, x)), ElementsAre(12));
}

TEST(GradientTapeTest, APersistentTapeIsAskedOften) {
  const Tensor x{2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const Tensor z = y * y;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(floats(tape.gradient(z, x)), ElementsAre(32));
    EXPECT_THAT(floats(tape.gradient(y, x)), ElementsAre(4));
  }
  const Tensor later = z * x;  // it goes on recording
  EXPECT_THAT(floats(tape.gradient(later, x)), ElementsAre(80));
}

TEST(GradientTapeTest, SourcesInTheMiddle) {
  const Tensor x{3.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const Tensor z = y * y;
  const auto g = tape.gradient(z, {x, y, z});
  EXPECT_THAT(floats(g[0]), ElementsAre(4 * 27));
  EXPECT_THAT(floats(g[1]), ElementsAre(18));
  EXPECT_THAT(floats(g[2]), ElementsAre(1));
  EXPECT_THAT(floats(tape.gradient(x, x)), ElementsAre(1));
}

TEST(GradientTapeTest, SeveralTargetsAddUp) {
  const Tensor x{3.f};
  const Tensor w{5.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(w);
  const Tensor a = x * x;
  const Tensor b = x * w;
  const auto g = tape.gradient(std::vector<Tensor>{a, b}, {x, w});
  EXPECT_THAT(floats(g[0]), ElementsAre(6 + 5));
  EXPECT_THAT(floats(g[1]), ElementsAre(3));
  const auto twice = tape.gradient(std::vector<Tensor>{a, a}, {x});
  EXPECT_THAT(floats(twice[0]), ElementsAre(12));
}

TEST(GradientTapeTest, OutputGradients) {
  const Tensor x{1.f, 2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  EXPECT_THAT(floats(tape.gradient(y, x, Tensor{10.f, 100.f})), ElementsAre(20, 400));
  const auto g = tape.gradient(std::vector<Tensor>{y, x}, {x}, {Tensor{1.f, 0.f}, Tensor{0.5f, 0.5f}});
  EXPECT_THAT(floats(g[0]), ElementsAre(2.5f, 0.5f));
  expect_error([&] { tape.gradient(y, x, Tensor{1.f}); }, Code::invalid_argument,
               "the output gradient has shape [1], the target [2]");
  expect_error([&] { tape.gradient(Tensor(), x); }, Code::invalid_argument, "target 0 refers to nothing");
}

TEST(GradientTapeTest, ATensorUsedTwiceAndBroadcast) {
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}};
  const Tensor row{10.f, 20.f};
  const Tensor scalar(2.f);
  GradientTape tape;
  for (const Tensor& t : {x, row, scalar}) tape.watch(t);
  const auto g = tape.gradient(x * row + x * scalar + x, {x, row, scalar});
  EXPECT_THAT(floats(g[0]), ElementsAre(13, 23, 13, 23));
  EXPECT_THAT(floats(g[1]), ElementsAre(4, 6));
  EXPECT_THAT(floats(g[2]), ElementsAre(10));
  EXPECT_EQ(g[2].value().shape(), Shape{});
}

TEST(GradientTapeTest, OnlyFloatsHaveDerivatives) {
  GradientTape tape;
  expect_error([&] { tape.watch(Tensor{1, 2}); }, Code::invalid_argument, "int32 tensors have no derivative");
  expect_error([&] { tape.watch(Tensor("a")); }, Code::invalid_argument, "string");
}

TEST(GradientTapeTest, HigherOrders) {
  const Tensor x{2.f};
  GradientTape third;
  third.watch(x);
  Tensor d2;
  {
    GradientTape second;
    second.watch(x);
    Tensor d1;
    {
      GradientTape first;
      first.watch(x);
      const Tensor y = x * x * x * x;
      d1 = first.gradient(y, x);
    }
    EXPECT_THAT(d1.to_vector<float>(), ElementsAre(32));
    d2 = second.gradient(d1, x);
  }
  EXPECT_THAT(d2.to_vector<float>(), ElementsAre(48));
  EXPECT_THAT(floats(third.gradient(d2, x)), ElementsAre(48));
}

TEST(GradientTapeTest, APersistentTapeDoesNotRecordItsOwnGradient) {
  const Tensor x{2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor dy = tape.gradient(x * x, x);
  EXPECT_FALSE(tape.gradient(dy, x).defined());
}

TEST(GradientTapeTest, StopRecording) {
  const Tensor x{2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y;
  {
    auto pause = tape.stop_recording();
    y = x * x;
  }
  const Tensor z = x * y;
  EXPECT_FALSE(tape.gradient(y, x).defined());
  EXPECT_THAT(floats(tape.gradient(z, x)), ElementsAre(4));  // y counts as a constant
}

TEST(GradientTapeTest, StoppingOneTapeLeavesTheOthers) {
  const Tensor x{2.f};
  GradientTape outer;
  GradientTape inner;
  outer.watch(x);
  inner.watch(x);
  Tensor y;
  {
    auto pause = inner.stop_recording();
    y = x * x;
  }
  EXPECT_FALSE(inner.gradient(y, x).defined());
  EXPECT_THAT(floats(outer.gradient(y, x)), ElementsAre(4));
}

TEST(GradientTapeTest, TapesThatEndOutOfOrder) {
  const Tensor x{2.f};
  auto a = std::make_unique<GradientTape>();
  auto b = std::make_unique<GradientTape>();
  a->watch(x);
  b->watch(x);
  const Tensor y = x * x;
  a.reset();
  const Tensor z = y * x;
  EXPECT_THAT(floats(b->gradient(z, x)), ElementsAre(12));
  b.reset();
  EXPECT_EQ(current_recorder(), nullptr);
}

TEST(GradientTapeTest, ATapeBelongsToItsThread) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  Tensor there;
  std::thread([&] {
    EXPECT_EQ(current_recorder(), nullptr);
    there = x * x;
    GradientTape own;
    own.watch(x);
    EXPECT_THAT(floats(own.gradient(x * x, x)), ElementsAre(4));
  }).join();
  const Tensor here = x * x * x;
  const auto g = tape.gradient(std::vector<Tensor>{there, here}, {x});
  EXPECT_THAT(floats(g[0]), ElementsAre(12));
}

TEST(GradientTapeTest, MayEndOnAnotherThread) {
  const Variable v(2.f);
  for (int k = 0; k < 20; ++k) {
    auto tape = std::make_unique<GradientTape>();
    const Tensor y = v * v;
    std::thread([&] {
      EXPECT_THAT(floats(tape->gradient(y, v)), ElementsAre(4));
      tape.reset();
    }).join();
    EXPECT_EQ((v * v).item<float>(), 4);  // recorded into what is no more, if it were still known here
    EXPECT_EQ(current_recorder(), nullptr);
  }
}

TEST(GradientTapeTest, EndsOnAnotherThreadWhileItsOwnGoesOn) {
  const Variable v(2.f);
  for (int k = 0; k < 50; ++k) {
    auto tape = std::make_unique<GradientTape>();
    std::thread other([&] { tape.reset(); });
    for (int i = 0; i < 20; ++i) EXPECT_EQ((v * v).item<float>(), 4);
    other.join();
  }
  EXPECT_EQ((v * v).item<float>(), 4);
  EXPECT_EQ(current_recorder(), nullptr);
}

TEST(GradientTapeTest, OutlivesTheThreadThatMadeIt) {
  const Variable v(2.f);
  std::unique_ptr<GradientTape> tape;
  Tensor y;
  std::thread([&] {
    tape = std::make_unique<GradientTape>();
    y = v * v;
  }).join();
  EXPECT_THAT(floats(tape->gradient(y, v)), ElementsAre(4));
  tape.reset();
}

TEST(GradientTapeTest, PausesOnAnotherThread) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  Tensor unseen;
  std::thread([&] {
    const auto pause = tape.stop_recording();
    std::thread([] {}).join();
    unseen = x * x;
  }).join();
  EXPECT_THAT(floats(tape.gradient(x * x * x, x)), ElementsAre(12));
}

TEST(GradientTapeTest, GoesOnAfterAPauseOnAnotherThread) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  std::atomic<int> turn = 0;
  std::thread other([&] {
    const auto pause = tape.stop_recording();
    turn = 1;
    while (turn != 2) std::this_thread::yield();
  });
  while (turn != 1) std::this_thread::yield();
  const Tensor unseen = x + 1;  // nothing records it
  turn = 2;
  other.join();
  EXPECT_THAT(floats(tape.gradient(x * x * x, x)), ElementsAre(12));
}

TEST(GradientTapeTest, RecordsAgainWhenResetAfterAnError) {
  const Tensor x{3.f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient(
      [](const std::vector<Tensor>& in) {
        return CustomGradient{in[0] * 2, [](const Tensor& dy) { return Gradients{dy, dy}; }};
      },
      {x});
  expect_error([&] { tape.gradient(y, x); }, Code::invalid_argument, "2 gradients were returned");
  expect_error([&] { tape.gradient(y, x); }, Code::failed_precondition, "asked twice");
  tape.reset();
  tape.watch(x);
  EXPECT_THAT(floats(tape.gradient(x * x, x)), ElementsAre(6));
}

TEST(GradientTapeTest, AnOpWithMoreInputsThanSixteenBitsCount) {
  constexpr int kMany = 65536 + 3;
  std::vector<Tensor> parts;
  for (int i = 0; i < kMany; ++i) parts.emplace_back(static_cast<float>(i % 10));
  GradientTape tape({.persistent = true});
  for (const int i : {0, 2, kMany - 1}) tape.watch(parts[static_cast<size_t>(i)]);
  const Tensor stacked = stack(parts);
  const Tensor y = reduce_sum(stacked * stacked);
  for (const int i : {0, 2, kMany - 1}) {
    const Gradient g = tape.gradient(y, parts[static_cast<size_t>(i)]);
    ASSERT_TRUE(g.defined()) << i;
    EXPECT_EQ(g.value().item<float>(), static_cast<float>(2 * (i % 10)));
  }
  EXPECT_EQ(Tensor(tape.gradient(add_n(parts), parts[2])).item<float>(), 1);
}

TEST(GradientTapeTest, MemoryIsReleased) {
  const Tensor x{2.f};
  Tensor y = x * x;
  {
    GradientTape tape;
    tape.watch(x);
    y = x * x;
    EXPECT_FALSE(y.impl()->unique());  // the tape holds it
    tape.gradient(y, x);
    EXPECT_TRUE(y.impl()->unique());
  }
  {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    y = x * x;
    tape.gradient(y, x);
    EXPECT_FALSE(y.impl()->unique());
  }
  EXPECT_TRUE(y.impl()->unique());
}

TEST(GradientTapeTest, WhatNobodyWatchesIsNotKept) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(Tensor{1.f});
  const Tensor y = x * x;
  EXPECT_TRUE(y.impl()->unique());
}

TEST(GradientTapeTest, VariablesAreWatchedWhenRead) {
  const Variable w(Tensor{3.f}, {.name = "w"});
  const Variable frozen(Tensor{5.f}, {.name = "frozen", .trainable = false});
  GradientTape tape({.persistent = true});
  const Tensor y = w * w * frozen;
  EXPECT_THAT(floats(tape.gradient(y, w)), ElementsAre(30));
  EXPECT_FALSE(tape.gradient(y, frozen).defined());
  ASSERT_EQ(tape.watched_variables().size(), 1u);
  EXPECT_EQ(tape.watched_variables()[0].name(), "w");
}

TEST(GradientTapeTest, AFrozenVariableMayBeWatched) {
  const Variable frozen(Tensor{5.f}, {.trainable = false});
  GradientTape tape;
  tape.watch(frozen);
  EXPECT_THAT(floats(tape.gradient(frozen * frozen, frozen)), ElementsAre(10));
}

TEST(GradientTapeTest, WatchingVariablesCanBeTurnedOff) {
  const Variable a(Tensor{3.f});
  const Variable b(Tensor{4.f});
  GradientTape tape({.persistent = true, .watch_accessed_variables = false});
  tape.watch(a);
  const Tensor y = a * b;
  EXPECT_THAT(floats(tape.gradient(y, a)), ElementsAre(4));
  EXPECT_FALSE(tape.gradient(y, b).defined());
}

TEST(GradientTapeTest, AVariableReadTwiceAndAssignedBetween) {
  const Variable w(Tensor{3.f});
  GradientTape tape;
  const Tensor a = w * w;
  w.assign(Tensor{10.f});
  const Tensor b = w * w;
  EXPECT_THAT(floats(tape.gradient(a + b, w)), ElementsAre(6 + 20));
}

TEST(GradientTapeTest, SecondOrderOfAVariable) {
  const Variable w(Tensor{3.f});
  GradientTape outer;
  Tensor dw;
  {
    GradientTape inner;
    dw = inner.gradient(w * w * w, w);
  }
  EXPECT_THAT(floats(outer.gradient(dw, w)), ElementsAre(18));
}

TEST(GradientTapeTest, SeveralVariablesAtOnce) {
  const std::vector<Variable> all{Variable(Tensor{1.f}), Variable(Tensor{2.f}), Variable(Tensor{3.f})};
  GradientTape tape;
  const Tensor loss = all[0] * all[1];
  const auto g = tape.gradient(loss, all);
  ASSERT_EQ(g.size(), 3u);
  EXPECT_THAT(floats(g[0]), ElementsAre(2));
  EXPECT_THAT(floats(g[1]), ElementsAre(1));
  EXPECT_FALSE(g[2].defined());
}

TEST(JacobianTest, EveryElementByEveryElement) {
  const Tensor x{2.f, 3.f};
  const Tensor m{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = reduce_sum(m * x, 1);  // m x
  const Tensor j = tape.jacobian(y, x);
  EXPECT_EQ(j.shape(), (Shape{3, 2}));
  EXPECT_THAT(j.to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(JacobianTest, OfMatricesAndOfNothing) {
  const Tensor x{{1.f, 2.f}};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor j = tape.jacobian(x * x, x);
  EXPECT_EQ(j.shape(), (Shape{1, 2, 1, 2}));
  EXPECT_THAT(j.to_vector<float>(), ElementsAre(2, 0, 0, 4));
  EXPECT_THAT(tape.jacobian(ones_like(x), x).to_vector<float>(), ElementsAre(0, 0, 0, 0));
}

TEST(JacobianTest, HessianByNesting) {
  const Tensor x{2.f, 3.f};
  GradientTape outer;
  outer.watch(x);
  Tensor dx;
  {
    GradientTape inner;
    inner.watch(x);
    dx = inner.gradient(reduce_sum(x * x * x), x);
  }
  EXPECT_THAT(outer.jacobian(dx, x).to_vector<float>(), ElementsAre(12, 0, 0, 18));
}

TEST(CustomGradientTest, ReplacesTheDerivative) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient(
      [](const std::vector<Tensor>& in) {
        return CustomGradient{in[0] * in[0], [](const Tensor& dy) { return Gradients{dy * 100.f}; }};
      },
      {x});
  EXPECT_EQ(y.item<float>(), 4);
  EXPECT_THAT(floats(tape.gradient(y * 2.f, x)), ElementsAre(200));
}

TEST(CustomGradientTest, SecondOrderGoesThroughTheGivenGradient) {
  const Tensor x{2.f};
  GradientTape outer;
  outer.watch(x);
  Tensor dx;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor y = custom_gradient(
        [](const std::vector<Tensor>& in) {
          const Tensor cube = in[0] * in[0] * in[0];
          // Uses both an input and something computed inside.
          return CustomGradient{in[0], [cube, x = in[0]](const Tensor& dy) { return Gradients{dy * cube * x}; }};
        },
        {x});
    dx = inner.gradient(y, x);
  }
  EXPECT_THAT(dx.to_vector<float>(), ElementsAre(16));
  EXPECT_THAT(floats(outer.gradient(dx, x)), ElementsAre(32));  // (x^4)'
}

TEST(CustomGradientTest, SeveralInputsAndAWrongCount) {
  const Tensor x{2.f};
  const Tensor w{3.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(w);
  auto f = [](size_t count) {
    return [count](const std::vector<Tensor>& in) {
      return CustomGradient{in[0] * in[1], [count](const Tensor& dy) { return Gradients(count, Gradient(dy)); }};
    };
  };
  const auto g = tape.gradient(custom_gradient(f(2), {x, w}), {x, w});
  EXPECT_THAT(floats(g[0]), ElementsAre(1));
  EXPECT_THAT(floats(g[1]), ElementsAre(1));
  const Tensor bad = custom_gradient(f(1), {x, w});
  expect_error([&] { tape.gradient(bad, x); }, Code::invalid_argument, "2 inputs, but 1 gradients");
}

TEST(CustomGradientTest, AFunctionThatReturnsItsInput) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient(
      [](const std::vector<Tensor>& in) {
        return CustomGradient{in[0], [](const Tensor& dy) { return Gradients{negative(dy)}; }};
      },
      {x});
  EXPECT_THAT(floats(tape.gradient(y, x)), ElementsAre(-1));
}

TEST(CustomGradientTest, AnErrorInsideLeavesTheTapeUsable) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  EXPECT_THROW(custom_gradient(
                   [](const std::vector<Tensor>& in) -> CustomGradient {
                     return {in[0] + Tensor{1, 2}, {}};
                   },
                   {x}),
               Error);
  EXPECT_THAT(floats(tape.gradient(x * x, x)), ElementsAre(4));
}

TEST(GradientTapeTest, HandlesOfOneVariableAreOneSource) {
  const Variable w(Tensor{2.f, 3.f});
  const Tensor other = Tensor::empty(DType::resource, {});
  *other.mutable_data<ResourceHandle>() = *w.handle().data<ResourceHandle>();
  const Variable same = Variable::from_handle(other);
  GradientTape tape({.persistent = true});
  const Tensor y = reduce_sum(w * same);
  EXPECT_EQ(tape.gradient(y, w).value().to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(tape.gradient(y, same).value().to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(tape.watched_variables().size(), 1u);
}

TEST(GradientTapeTest, AnErrorInAGradientLeavesTheTapeUsable) {
  const Tensor x{2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor bad = custom_gradient(
      [](const std::vector<Tensor>& in) {
        return CustomGradient{in[0], [](const Tensor&) -> Gradients { throw Error(Code::internal, "no"); }};
      },
      {x});
  const Tensor y = x * x;
  EXPECT_THROW(tape.gradient(bad, x), Error);
  EXPECT_THAT(floats(tape.gradient(y, x)), ElementsAre(4));
  EXPECT_THAT(floats(tape.gradient(x * y, x)), ElementsAre(12));
}

}  // namespace
}  // namespace runnel
