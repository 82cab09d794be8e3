// What a function under custom_gradient may read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

Tensor scaled(const Tensor& x, const Variable& w) {
  return custom_gradient(
      [&](const std::vector<Tensor>& in) {
        const Tensor factor = w.value();
        return CustomGradient{in[0] * factor, [=](const Tensor& dy) { return Gradients{dy * factor}; }};
      },
      {x});
}

constexpr const char* kRefused = "the function reads the trainable variable 'scale' itself";

TEST(CustomGradientVariables, OneThatTheFunctionReadsIsRefused) {
  const Variable w(3.f, {.name = "scale"});
  const Tensor x{2.f};
  expect_error([&] { scaled(x, w); }, Code::failed_precondition, kRefused);
  GradientTape tape;
  tape.watch(x);
  expect_error([&] { scaled(x, w); }, Code::failed_precondition, "pass the variable among the inputs");
  const auto g = tape.gradient(x * w, {GradSource(x), GradSource(w)});  // the tape is none the worse
  EXPECT_THAT(g[0].value().to_vector<float>(), ElementsAre(3));
  EXPECT_THAT(g[1].value().to_vector<float>(), ElementsAre(2));
}

TEST(CustomGradientVariables, AlsoInATraceAndByATracedFunction) {
  const Variable w(3.f, {.name = "scale"});
  const Tensor x{2.f};
  const auto f = function([&](const Tensor& a) { return scaled(a, w); });
  expect_error([&] { f(x); }, Code::failed_precondition, kRefused);
  const auto times_w = function([&](const Tensor& a) { return a * w; });
  times_w(x);
  const auto by_function = [&] {
    return custom_gradient(
        [&](const std::vector<Tensor>& in) {
          return CustomGradient{times_w(in[0]), [](const Tensor& dy) { return Gradients{dy}; }};
        },
        {x});
  };
  expect_error([&] { by_function(); }, Code::failed_precondition, kRefused);
  GradientTape tape;
  expect_error([&] { by_function(); }, Code::failed_precondition, kRefused);
}

TEST(CustomGradientVariables, InputsAndFrozenOnesAreNot) {
  const Variable w(3.f);
  const Variable frozen(5.f, {.trainable = false});
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient(
      [&](const std::vector<Tensor>& in) {
        return CustomGradient{in[0] * in[1] * frozen.value(), [in](const Tensor& dy) {
                                return Gradients{dy * in[1], reduce_sum(dy * in[0])};
                              }};
      },
      {x, w});
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(30));
  const Tensor after = w * 1.f;  // read outside: nobody objects
  const auto g = tape.gradient(y, {GradSource(x), GradSource(w)});
  EXPECT_THAT(g[0].value().to_vector<float>(), ElementsAre(3));
  EXPECT_EQ(g[1].value().item<float>(), 2);
}

TEST(GradientTapeTest, GoesOnWhenAPauseEndsInATrace) {
  const Tensor x{3.f};
  GradientTape tape;
  tape.watch(x);
  auto pause = std::make_unique<GradientTape::Pause>(tape);
  const auto f = function([&](const Tensor& t) {
    pause.reset();
    return t * 2;
  });
  f(x);
  EXPECT_THAT(tape.gradient(x * x, x).value().to_vector<float>(), ElementsAre(6));
}

}  // namespace
}  // namespace runnel
