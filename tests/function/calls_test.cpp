// Calls of functions and of control flow as users write them, and the mistakes they make.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "runnel/function/traced_blocks.h"
#include "runnel/runnel.h"
#include "tests/support/caller_lines.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(Calls, TakeListsInBraces) {
  auto twice = function([](const Tensor& x) { return x * 2; });
  EXPECT_EQ(twice({1.f, 2.f}).to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(twice({{1, 2}, {3, 4}}).shape(), (Shape{2, 2}));
  auto first = function([](const std::vector<Tensor>& all) { return all[0]; });
  EXPECT_EQ(first({Tensor(3), Tensor(4)}).item<int32_t>(), 3);
  auto sum = function([](auto x, auto y) { return x + y; });
  EXPECT_EQ(sum({1, 2}, {3, 4}).to_vector<int32_t>(), (std::vector<int32_t>{4, 6}));
  auto texts = function([](const Tensor& x) { return x; });
  EXPECT_EQ(texts({"a", "b"}).shape(), (Shape{2}));
  auto five = function([](Tensor a, Tensor b, Tensor c, Tensor d, Tensor e) { return a + b + c + d + e; });
  const Tensor one(1);
  EXPECT_EQ(five(one, one, one, one, one).item<int32_t>(), 5);
}

TEST(Calls, MistakesNameTheLine) {
  auto f = function([](const Tensor& x) { return x; }, {.input_signature = {{Shape{2}, float32}}});
  f({1.f, 2.f});
  EXPECT_NAMES_THIS_LINE(f({1, 2}));
  EXPECT_NAMES_THIS_LINE(f({1.f}));
  auto none = function([] { return 1; }, {.input_signature = {{Shape{2}, float32}}});
  EXPECT_NAMES_THIS_LINE(none());
  auto cases = function([](const Tensor& x) {
    EXPECT_NAMES_THIS_LINE(cond(
        x > 0, [&] { return x; }, [&] { return cast(x, int32); }));
    EXPECT_NAMES_THIS_LINE(switch_case(cast(x, int32), {[&] { return x; }, [&] { return cast(x, int32); }}));
    EXPECT_NAMES_THIS_LINE(cond(
        stack({x, x}) > 0, [&] { return x; }, [&] { return x; }));
    EXPECT_NAMES_THIS_LINE(while_loop([](Tensor i) { return stack({i, i}) < 1; }, [](Tensor i) { return i + 1; }, x));
    EXPECT_NAMES_THIS_LINE(while_loop([](Tensor i) { return i < 1; }, [](Tensor i) { return cast(i, int32); }, x));
    EXPECT_NAMES_THIS_LINE([&] {
      IF(stack({x, x}) > 0) {}
    }());
    EXPECT_NAMES_THIS_LINE([&] {
      WHILE(x > 0 && x < 5) {}
    }());
    EXPECT_NAMES_THIS_LINE([&] {
      IF(x > 0 && x < 5) {}
    }());
    expect_error(
        [&] {
          WHILE(x > 0 && x < 5) {}
        },
        Code::failed_precondition, "logical_and(a, b)");
    return x;
  });
  cases(Tensor(1.f));
  EXPECT_NAMES_THIS_LINE([&] {
    IF(Tensor{1, 2} > 0) {}
  }());
}

TEST(Calls, AResultThatRefersToNothingIsAnError) {
  const Tensor x(1.f);
  expect_error([&] { function([](Tensor) { return Tensor(); })(x); }, Code::failed_precondition,
               "the result refers to nothing");
  expect_error([&] { function([](Tensor y) {
                       return std::tuple{y, Tensor()};
                     })(x); }, Code::failed_precondition,
               "the result[1] refers to nothing");
  EXPECT_NAMES_THIS_LINE(function([](Tensor) { return Tensor(); })(x));
  // A gradient may be none.
  EXPECT_FALSE(function([](Tensor) { return Gradient(); })(x).defined());
}

TEST(Calls, RecursionWithoutEndIsAnError) {
  using F = std::function<Tensor(Tensor)>;
  auto self = std::make_shared<F>();
  *self = function([weak = std::weak_ptr<F>(self)](const Tensor& x) -> Tensor {
    return cond(
        x > -1, [&] { return (*weak.lock())(x + 1); }, [&] { return x; });
  });
  EXPECT_EQ((*self)(Tensor(-1.f)).item<float>(), -1);
  expect_error([&] { (*self)(Tensor(1.f)); }, Code::resource_exhausted, "used up the stack");
  run_functions_eagerly(true);
  expect_error([&] { (*self)(Tensor(1.f)); }, Code::resource_exhausted, "used up the stack");
  run_functions_eagerly(false);
  EXPECT_EQ((*self)(Tensor(-1.f)).item<float>(), -1);
}

template <class F>
void both_ways(const F& f) {
  f();
  run_functions_eagerly(true);
  f();
  run_functions_eagerly(false);
}

TEST(ControlFlowCalls, LoopsBeginWithNumbers) {
  auto count = function(
      [](const Tensor& n) { return while_loop([&](Tensor i) { return i < n; }, [](Tensor i) { return i + 2; }, 0); });
  auto powers = function([](const Tensor& n) {
    return while_loop([&](Tensor i, Tensor) { return i < n; },
                      [](Tensor i, Tensor p) {
                        return std::tuple{i + 1, p * 2};
                      },
                      std::tuple{0, 1.f});
  });
  auto total = function([](const Tensor& x) { return foldl([](Tensor a, Tensor b) { return a + b; }, x, 0.f); });
  both_ways([&] {
    EXPECT_EQ(count(Tensor(5)).item<int32_t>(), 6);
    EXPECT_EQ(std::get<1>(powers(Tensor(5))).item<float>(), 32);
    EXPECT_EQ(total({1.f, 2.f}).item<float>(), 3);
  });
}

TEST(ControlFlowCalls, BranchesOfDifferentTypes) {
  auto pick = function([](const Tensor& i, const Tensor& x) {
    return switch_case(i, {[&] { return x + 1; }, [&] { return x * 10; }});
  });
  auto fold = function([](const Tensor& x) {
    return case_({{x < 0, [&] { return -x; }}, {x > 9, [&] { return x - 9; }}}, [&] { return x; });
  });
  both_ways([&] {
    EXPECT_EQ(pick(Tensor(0), Tensor(2)).item<int32_t>(), 3);
    EXPECT_EQ(pick(Tensor(1), Tensor(2)).item<int32_t>(), 20);
    EXPECT_EQ(fold(Tensor(-3)).item<int32_t>(), 3);
    EXPECT_EQ(fold(Tensor(12)).item<int32_t>(), 3);
    EXPECT_EQ(fold(Tensor(3)).item<int32_t>(), 3);
  });
}

}  // namespace
}  // namespace runnel
