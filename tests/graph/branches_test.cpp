// Loops that do not need each other run at the same time, with the results they have one after the other.
#include "runnel/graph/executor/branches.h"
#include "runnel/graph/graph_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <chrono>

#include <atomic>
#include <thread>

#include "runnel/graph/executor/plan.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using testing::FloatEq;
using testing::Pointwise;

// n rounds of y = y * 0.75 + x.
Tensor rounds(const Tensor& n, const Tensor& x) {
  const auto [i, y] = while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                 [&](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y * 0.75f + x); },
                                 std::tuple(Tensor(0), x));
  return y;
}

template <class F, class... Args>
int widest(F& f, const Args&... args) {
  return f.get_concrete_function(args...).function()->plan().widest_group();
}

const Tensor x{1.f, 2.f, 3.f};

TEST(ParallelBranches, LoopsSideBySide) {
  const auto body = [](const Tensor& n, const Tensor& x) {
    const Tensor a = rounds(n, x) + 1;  // what follows the first loop does not keep the others from joining it
    const Tensor b = rounds(n, x * 2) * a;
    return b + rounds(n + 5, x);
  };
  auto f = function(body);
  EXPECT_EQ(widest(f, Tensor(9), x), 3);
  EXPECT_EQ(f(Tensor(9), x).to_vector<float>(), body(Tensor(9), x).to_vector<float>());
  EXPECT_EQ(f(Tensor(100), x).to_vector<float>(), body(Tensor(100), x).to_vector<float>());

  auto in_order = function(body, {.plan = {.parallel_branches = false}});
  EXPECT_EQ(widest(in_order, Tensor(9), x), 1);
  EXPECT_EQ(in_order(Tensor(9), x).to_vector<float>(), f(Tensor(9), x).to_vector<float>());
}

TEST(ParallelBranches, NotWhereOneNeedsTheOtherOrOrderMatters) {
  auto dependent = function([](const Tensor& n, const Tensor& x) { return rounds(n, rounds(n, x)); });
  EXPECT_EQ(widest(dependent, Tensor(3), x), 1);
  auto pairs = function([](const Tensor& n, const Tensor& x) {
    const Tensor a = rounds(n, x), b = rounds(n, x + 1);
    return rounds(n, a) + rounds(n, b);
  });
  EXPECT_EQ(widest(pairs, Tensor(3), x), 2);
  Variable v(Tensor(0.f));
  auto stateful = function([&](const Tensor& n) {
    for (int k = 0; k < 2; ++k) {
      while_loop([&](const Tensor& i) { return i < n; },
                 [&](const Tensor& i) {
                   v.assign(v * 2 + static_cast<float>(k));
                   return i + 1;
                 },
                 Tensor(0));
    }
    return v.value();
  });
  EXPECT_EQ(widest(stateful, Tensor(3)), 1);
  EXPECT_EQ(stateful(Tensor(3)).item<float>(), 7.f);
}

TEST(ParallelBranches, LoopsInsideCallsAndConditionals) {
  auto inner = function([](const Tensor& n, const Tensor& x) { return rounds(n, x); });
  const auto body = [&](const Tensor& n, const Tensor& x) {
    const Tensor a = cond(
        n > 4, [&] { return rounds(n, x); }, [&] { return x; });
    return a + inner(n, x - 1) + inner(n, x - 2);
  };
  auto f = function(body);
  EXPECT_GE(widest(f, Tensor(9), x), 2);
  for (const int n : {2, 9}) EXPECT_EQ(f(Tensor(n), x).to_vector<float>(), body(Tensor(n), x).to_vector<float>());
}

TEST(ParallelBranches, GradientsThroughThem) {
  const auto gradient = [](auto f) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(Tensor(6), x);
    return tape.gradient(y, x).value().to_vector<float>();
  };
  const auto body = [](const Tensor& n, const Tensor& x) { return rounds(n, x) * rounds(n, x * x); };
  // Three ways lead to x; in which order they are added up depends on which operand the compiler evaluates first.
  EXPECT_THAT(gradient(function(body)), Pointwise(FloatEq(), gradient(body)));
}

TEST(ParallelBranches, ErrorsNameTheNodeAndTheFunctionStaysUsable) {
  auto f = function([](const Tensor& n, const Tensor& at) {
    const Tensor a = rounds(n, x);
    const auto [i, y] =
        while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                   [&](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y + gather(x, at)); },
                   std::tuple(Tensor(0), Tensor(0.f)));
    return a + y;
  });
  EXPECT_EQ(widest(f, Tensor(2), Tensor(0)), 2);
  test::expect_error([&] { f(Tensor(2), Tensor(7)); }, Code::invalid_argument, "branches_test.cpp");
  EXPECT_EQ(f(Tensor(0), Tensor(7)).to_vector<float>(), x.to_vector<float>());
}

TEST(ParallelBranches, ManyThreadsAndCancellation) {
  const auto body = [](const Tensor& n, const Tensor& x) { return rounds(n, x) - rounds(n, x + 1); };
  auto f = function(body);
  const auto expected = body(Tensor(50), x).to_vector<float>();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) wrong += f(Tensor(50), x).to_vector<float>() != expected;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);

  const CancellationToken token;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    token.cancel();
  });
  {
    const CancellationScope scope(token);
    test::expect_error([&] { f(Tensor(2'000'000'000), x); }, Code::cancelled, "cancelled");
  }
  canceller.join();
}

}  // namespace
}  // namespace runnel
