// Loops whose gradient was taken inside their graph: the node has inputs that stand behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

TEST(LoopGradient, ASessionRunsItAndItsOwnGradient) {
  namespace v1 = compat::v1;
  const v1::Graph graph;
  const auto scope = graph.as_default();
  const Variable w = v1::get_variable("w", {}, {.initializer = v1::ones_initializer()});
  const auto [i, y] = while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                 [&](const Tensor& i, const Tensor& y) {
                                   return std::tuple{i + 1, y * y * w.value()};
                                 },
                                 std::tuple{Tensor(0), w.value()});
  v1::Session session;
  session.run(v1::global_variables_initializer());
  EXPECT_EQ(session.run(y).item<float>(), 1);
  const Tensor slope = v1::gradients(y, {w})[0].value();  // y is w^15
  EXPECT_EQ(session.run(slope).item<float>(), 15);
  EXPECT_EQ(session.run(y).item<float>(), 1);
  const Tensor twice = v1::gradients(y * 2.f, {w})[0].value();
  EXPECT_EQ(session.run(twice).item<float>(), 30);
}

TEST(LoopGradient, AVariableIsMadeBehindIt) {
  std::optional<Variable> v;
  const auto f = function([&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    auto [i, y] = while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                             [](const Tensor& i, const Tensor& y) {
                               return std::tuple{i + 1, y * y};
                             },
                             std::tuple{Tensor(0), x});
    for (int k = 0; k < 300; ++k) y = y * 1.f;
    const Tensor slope = tape.gradient(y, x).value();
    if (!v) v.emplace(random::normal({}) * 0.f + 1.f);
    return slope + v->value();
  });
  EXPECT_EQ(f(Tensor(1.f)).item<float>(), 9);  // 8 x^7 + 1
}

TEST(LoopGradient, AVariableCannotDependOnAnArgument) {
  std::optional<Variable> v;
  const auto f = function([&](const Tensor& x) {
    if (!v) v.emplace(x * 2.f);
    return x + v->value();
  });
  expect_error([&] { f(Tensor(1.f)); }, Code::failed_precondition, "the initial value depends on an argument");
}

// x is replaced by z before it is used.
Tensor replaced(const Tensor& x, const Tensor& z) {
  const auto [i, y] = while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                                 [&](const Tensor& i, const Tensor&) {
                                   return std::tuple{i + 1, z * 1.f};
                                 },
                                 std::tuple{Tensor(0), x}, {.shape_invariants = {PartialShape{}, PartialShape{-1}}});
  return reduce_sum(y);
}

TEST(LoopGradient, ZerosHaveTheShapeOfTheStateBeforeTheIteration) {
  const Tensor x{1.f, 2.f, 3.f};
  const Tensor z{1.f, 2.f};
  const auto inside = function([](const Tensor& a, const Tensor& b) {
    GradientTape tape;
    tape.watch(a);
    tape.watch(b);
    const auto g = tape.gradient(replaced(a, b), {a, b});
    return std::pair(g[0].value(), g[1].value());
  });
  const auto [dx, dz] = inside(x, z);
  EXPECT_THAT(dx.to_vector<float>(), ElementsAre(0, 0, 0));
  EXPECT_THAT(dz.to_vector<float>(), ElementsAre(1, 1));

  const auto f = function([](const Tensor& a, const Tensor& b) { return replaced(a, b); });
  GradientTape tape;
  tape.watch(x);
  tape.watch(z);
  const auto g = tape.gradient(f(x, z), {x, z});
  EXPECT_THAT(g[0].value().to_vector<float>(), ElementsAre(0, 0, 0));
  EXPECT_THAT(g[1].value().to_vector<float>(), ElementsAre(1, 1));
}

TEST(LoopGradient, ZerosOfAnyRank) {
  const auto f = function([](const Tensor& x, const Tensor& z) {
    GradientTape tape;
    tape.watch(x);
    const auto [i, y] =
        while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                   [&](const Tensor& i, const Tensor&) {
                     return std::tuple{i + 1, z * 1.f};
                   },
                   std::tuple{Tensor(0), x}, {.shape_invariants = {PartialShape{}, PartialShape::unknown()}});
    return tape.gradient(reduce_sum(y), x).value();
  });
  const Tensor dx = f(ones({2, 3}), Tensor{1.f});
  EXPECT_EQ(dx.shape(), (Shape{2, 3}));
  EXPECT_THAT(dx.to_vector<float>(), ElementsAre(0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace runnel
