// Functions that run are stopped from another thread, and everything stays usable.
#include "runnel/graph/cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runnel/compat/v1.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

// Cancels the token once `started` is true.
std::thread canceller(const CancellationToken& token, const std::atomic<bool>& started) {
  return std::thread([token, &started] {
    while (!started) std::this_thread::yield();
    token.cancel();
  });
}

Tensor tells(std::atomic<bool>& started, const Tensor& x) {
  return host_call(
      [&started](const std::vector<Tensor>& in) {
        started = true;
        return in;
      },
      {x}, {x.dtype()}, {x.partial_shape()})[0];
}

TEST(Cancellation, StopsAnEndlessLoop) {
  std::atomic<bool> started = false;
  const Variable v(1.f);
  auto endless = function([&](const Tensor& bound) {
    const Tensor first = tells(started, bound);
    return while_loop([&](const Tensor& i) { return i < first; },
                      [&](const Tensor& i) {
                        v.assign_add(1.f);
                        return i * 1.f;
                      },
                      Tensor(0.f));
  });
  const CancellationToken token;
  std::thread other = canceller(token, started);
  {
    const CancellationScope scope(token);
    expect_error([&] { endless(Tensor(1.f)); }, Code::cancelled, "cancelled");
    // So is whatever is run while the scope lives.
    expect_error([&] { endless(Tensor(-1.f)); }, Code::cancelled, "cancelled");
  }
  other.join();
  const float at = v.value().item<float>();
  EXPECT_EQ(endless(Tensor(-1.f)).item<float>(), 0);  // the function, without the scope
  EXPECT_EQ(v.value().item<float>(), at);
  v.assign(3.f);
  EXPECT_EQ(v.value().item<float>(), 3);
}

TEST(Cancellation, InsideLoopsInBranchesInFunctions) {
  std::atomic<bool> started = false;
  auto inner = function([&](const Tensor& n) {
    Tensor i = n * 0;
    WHILE(i < n) {
      Tensor k = n * 0;
      WHILE(k < n) { k = tells(started, k); }
      i = i + 1;
    }
    return i;
  });
  auto outer = function([&](const Tensor& n) {
    return cond(
        n > 0, [&] { return inner(n); }, [&] { return n - 1; });
  });
  const CancellationToken token;
  std::thread other = canceller(token, started);
  {
    const CancellationScope scope(token);
    expect_error([&] { outer(Tensor(5)); }, Code::cancelled, "cancelled");
  }
  other.join();
  EXPECT_EQ(outer(Tensor(0)).item<int32_t>(), -1);
}

TEST(Cancellation, OfDerivatives) {
  const CancellationToken token;
  auto f = function([&](const Tensor& x) {
    return while_loop([](const Tensor& i, const Tensor&) { return i < 10; },
                      [](const Tensor& i, const Tensor& y) {
                        return std::tuple{i + 1, sin(y)};
                      },
                      std::tuple{Tensor(0), x});
  });
  const Tensor x(0.5f);
  const auto slope = [&](bool cancel) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = std::get<1>(f(x));
    if (!cancel) return Tensor(tape.gradient(y, x));
    token.cancel();
    const CancellationScope scope(token);
    return Tensor(tape.gradient(y, x));
  };
  const float want = slope(false).item<float>();
  expect_error([&] { slope(true); }, Code::cancelled, "cancelled");
  EXPECT_EQ(slope(false).item<float>(), want);
}

TEST(Cancellation, ScopesNestAndThreadsAreApart) {
  const CancellationToken outer;
  const CancellationToken inner;
  auto f = function([](const Tensor& x) { return x + 1; });
  f(Tensor(1));
  const CancellationScope first(outer);
  {
    const CancellationScope second(inner);
    EXPECT_EQ(f(Tensor(1)).item<int32_t>(), 2);
    outer.cancel();
    expect_error([&] { f(Tensor(1)); }, Code::cancelled, "cancelled");
    std::thread([&] { EXPECT_EQ(f(Tensor(1)).item<int32_t>(), 2); }).join();
  }
  expect_error([&] { f(Tensor(1)); }, Code::cancelled, "before node 'Add");
  EXPECT_TRUE(outer.cancelled());
  EXPECT_FALSE(inner.cancelled());
}

TEST(Cancellation, OfASession) {
  namespace v1 = compat::v1;
  v1::Graph graph;
  Tensor x, y;
  {
    const auto scope = graph.as_default();
    x = v1::placeholder(float32, {}, "x");
    y = x * 2;
  }
  v1::Session session(graph);
  EXPECT_EQ(session.run(y, {{x, Tensor(2.f)}}).item<float>(), 4);
  const CancellationToken token;
  token.cancel();
  {
    const CancellationScope scope(token);
    expect_error([&] { session.run(y, {{x, Tensor(2.f)}}); }, Code::cancelled, "cancelled");
  }
  EXPECT_EQ(session.run(y, {{x, Tensor(3.f)}}).item<float>(), 6);
}

TEST(Cancellation, ATokenThatWasMovedFromSaysSo) {
  CancellationToken token;
  const CancellationToken other = std::move(token);
  EXPECT_FALSE(other.cancelled());
  const std::string text = "this CancellationToken was moved from";
  // NOLINTNEXTLINE(bugprone-use-after-move): the point
  expect_error([&] { token.cancel(); }, Code::failed_precondition, text);
  expect_error([&] { static_cast<void>(token.cancelled()); }, Code::failed_precondition, text);
  expect_error([&] { const CancellationScope scope(token); }, Code::failed_precondition, text);
  token = other;
  token.cancel();
  EXPECT_TRUE(other.cancelled());
}

}  // namespace
}  // namespace runnel
