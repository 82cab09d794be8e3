// What profiles have of functions: their tracing, passes and runs, and the nodes, chains and groups of their plans.
#include <gmock/gmock.h>

#include <algorithm>

#include "runnel/function/traced_blocks.h"
#include "runnel/graph/name_scope.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/profiles.h"

namespace runnel {
namespace {

using profile::Event;
using profile::Kind;
using profile::Recording;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

bool all_inside(const std::vector<Event>& inner, const Event& outer) {
  return std::ranges::all_of(inner, [&](const Event& event) { return is_inside(event, outer); });
}

TEST(GraphProfile, TheFirstCallTracesAndTheNextOnesRun) {
  auto f = function([](const Tensor& x) { return matmul(x, x) + 1.f; }, {.name = "product"});
  const Tensor x = ones({3, 3});
  const Recording first = recorded([&] { f(x); });
  ASSERT_EQ(events_of(first, Kind::tracing).size(), 1U);
  EXPECT_EQ(events_of(first, Kind::tracing)[0].name, "product_0");
  EXPECT_THAT(names_of(events_of(first, Kind::pass)), Contains("constant_folding"));
  EXPECT_THAT(names_of(events_of(first, Kind::pass)), Contains("plan"));
  EXPECT_EQ(events_of(first, Kind::pass, "plan").at(0).detail, "product_0");

  const Recording second = recorded([&] { f(x); });
  EXPECT_TRUE(events_of(second, Kind::tracing).empty());
  EXPECT_TRUE(events_of(second, Kind::pass).empty());
  EXPECT_TRUE(events_of(second, Kind::op).empty());
  ASSERT_EQ(events_of(second, Kind::run).size(), 1U);
  EXPECT_EQ(events_of(second, Kind::run)[0].name, "product_0");
  const std::vector<Event> nodes = events_of(second, Kind::node);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].op_type, "MatMul");
  EXPECT_EQ(nodes[0].detail, "float32[3,3] float32[3,3] -> float32[3,3]");
  EXPECT_EQ(nodes[0].flops, 2 * 27);
  EXPECT_EQ(nodes[1].op_type, "AddV2");
  EXPECT_TRUE(all_inside(nodes, events_of(second, Kind::run)[0]));
}

TEST(GraphProfile, NothingIsRecordedWhenItIsOff) {
  auto f = function([](const Tensor& x) { return matmul(x, x); });
  const Tensor x = ones({3, 3});
  f(x);
  const Recording r = recorded([] {});
  f(x);
  EXPECT_TRUE(r.events.empty());
  EXPECT_TRUE(recorded([] {}).events.empty());
}

TEST(GraphProfile, NodesHaveTheirScopes) {
  auto f = function([](const Tensor& x) {
    const auto scope = name_scope("encoder");
    return matmul(x, x);
  });
  const Recording r = recorded([&] { f(ones({2, 2})); });
  EXPECT_THAT(names_of(events_of(r, Kind::node)), ElementsAre("encoder/MatMul"));
}

TEST(GraphProfile, AChainIsOneEvent) {
  auto f = function([](const Tensor& x) { return exp(x * 2.f) + x; });
  const Tensor x = zeros({1 << 17});
  f(x);
  const Recording r = recorded([&] { f(x); });
  const std::vector<Event> chains = events_of(r, Kind::chain);
  ASSERT_EQ(chains.size(), 1U);
  EXPECT_EQ(chains[0].detail, "Mul Exp AddV2 of float32[131072]");
  EXPECT_EQ(chains[0].flops, 3 * (1 << 17));
  EXPECT_EQ(chains[0].bytes, 2 * 4 * (1 << 17));  // x is read, the result is written
  EXPECT_TRUE(events_of(r, Kind::node).empty());
}

TEST(GraphProfile, AGroupHasItsNodesInside) {
  const auto loop = [](const Tensor& n, const Tensor& x) {
    const auto [i, y] = while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                   [&](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y * 0.75f + x); },
                                   std::tuple(Tensor(0), x));
    return y;
  };
  auto f = function([&](const Tensor& n, const Tensor& x) { return loop(n, x) + loop(n, x * 2.f); });
  const Tensor n(5), x{1.f, 2.f};
  f(n, x);
  const Recording r = recorded([&] { f(n, x); });
  const std::vector<Event> groups = events_of(r, Kind::group);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].detail, "2 nodes side by side");
  const std::vector<Event> nodes = events_of(r, Kind::node);
  EXPECT_EQ(std::ranges::count_if(nodes,
                                  [](const Event& e) { return e.op_type == "While" || e.op_type == "StatelessWhile"; }),
            2);
  for (const Event& event : nodes) {
    EXPECT_TRUE(!event.op_type.ends_with("While") || is_inside(event, groups[0]));
  }
}

TEST(GraphProfile, IterationsAreRuns) {
  auto f = function([](const Tensor& n) {
    Tensor x(1.f);
    Tensor i(0);
    WHILE(i < n) {
      x = x * 2.f;
      i = i + 1;
    }
    return x;
  });
  f(Tensor(1));
  const Recording r = recorded([&] { f(Tensor(6)); });
  const std::vector<Event> runs = events_of(r, Kind::run);
  const auto bodies =
      std::ranges::count_if(runs, [](const Event& e) { return e.name.find("body") != std::string::npos; });
  EXPECT_EQ(bodies, 6) << testing::PrintToString(names_of(runs));
}

TEST(GraphProfile, OnlyTheBranchThatIsTakenRuns) {
  auto f = function([](const Tensor& x) {
    Tensor y = x;
    IF(reduce_sum(x) > 0.f) { y = exp(x); }
    else {
      y = sin(x);
    }
    return y;
  });
  f(Tensor{1.f});
  const Recording r = recorded([&] { f(Tensor{-1.f}); });
  std::vector<std::string> ops;
  for (const Event& event : events_of(r, Kind::node)) ops.push_back(event.op_type);
  EXPECT_THAT(ops, Contains("Sin"));
  EXPECT_THAT(ops, Not(Contains("Exp")));
}

TEST(GraphProfile, AnErrorEndsNodeAndRun) {
  auto f = function([](const Tensor& x) { return debugging::check_numerics(log(x), "not finite") + 1.f; });
  f(Tensor{1.f});
  const Recording r = recorded([&] {
    test::expect_error([&] { f(Tensor{-1.f}); }, Code::invalid_argument, "not finite");
    f(Tensor{2.f});
  });
  const std::vector<Event> runs = events_of(r, Kind::run);
  ASSERT_EQ(runs.size(), 2U);
  const std::vector<Event> nodes = events_of(r, Kind::node);
  EXPECT_EQ(std::ranges::count_if(nodes, [](const Event& e) { return e.op_type == "CheckNumerics"; }), 2);
  EXPECT_LE(runs[0].end_ns, runs[1].begin_ns);
}

TEST(GraphProfile, DerivativesArePasses) {
  auto f = function([](const Tensor& x) { return reduce_sum(x * x); }, {.name = "square"});
  const Tensor x{1.f, 2.f};
  const Recording r = recorded([&] {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x);
    tape.gradient(y, x);
  });
  EXPECT_FALSE(events_of(r, Kind::pass, "derivative").empty());
  EXPECT_GE(events_of(r, Kind::run).size(), 2U);
}

}  // namespace
}  // namespace runnel
