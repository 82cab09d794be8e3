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
  auto quiet = function([](const std::vector<Tensor>& all) noexcept { return all[1]; });
  EXPECT_EQ(quiet({Tensor(3), Tensor(4)}).item<int32_t>(), 4);
  auto changing = function([](const std::vector<Tensor>& all) mutable noexcept { return all[1]; });
  EXPECT_EQ(changing({Tensor(3), Tensor(4)}).item<int32_t>(), 4);
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

// The library, or the C++ library, calls the function there: their lines say nothing.
TEST(Calls, ErrorsNameNoLineOfTheLibrary) {
  const auto quietly = [](const std::function<void()>& mistake) {
    EXPECT_THAT(test::message_of(mistake),
                testing::AnyOf(testing::HasSubstr("must be"), testing::HasSubstr("nothing")));
    EXPECT_THAT(test::message_of(mistake), testing::Not(testing::HasSubstr("(at ")));
  };
  auto pairs = function([](const Tensor& x) { return x; }, {.input_signature = {{PartialShape{2}, float32}}});
  const std::function<Tensor(Tensor)> kept = pairs;
  quietly([&] { kept({1.f}); });
  quietly([&] { std::apply(pairs, std::tuple{Tensor{1.f}}); });
  EXPECT_NAMES_THIS_LINE(pairs({1.f}));
  auto nothing = function([] { return Tensor(); });
  quietly([&] { cond(Tensor(true), nothing, nothing); });
  EXPECT_NAMES_THIS_LINE(nothing());
}

TEST(Calls, RecursionWithoutEndNamesTheLineOfTheCall) {
  std::function<Tensor(Tensor)> self;
  auto f = function([&](const Tensor& x) {
    return cond(
        x > 0, [&] { return self(x); }, [&] { return x; });
  });
  const int line = __LINE__ + 1;
  self = [&](const Tensor& x) { return f(x); };
  expect_error([&] { f(Tensor(1.f)); }, Code::resource_exhausted, "calls_test.cpp:" + std::to_string(line) + ")");
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

TEST(ControlFlowCalls, EmptyFunctionsAreErrors) {
  const Tensor yes(true);
  const std::function<Tensor()> empty, one = [] { return Tensor(1); };
  EXPECT_NAMES_THIS_LINE(case_({{yes, one}}, nullptr));  // though it is not called
  EXPECT_NAMES_THIS_LINE(case_({{yes, one}, {yes, empty}}, one));
  EXPECT_NAMES_THIS_LINE(cond(yes, one, empty));
  EXPECT_NAMES_THIS_LINE(switch_case(0, {one, empty}));
  expect_error(
      [&] {
        case_({{yes, one}, {yes, empty}}, one);
      },
      Code::invalid_argument, "[case_] branch 1 is an empty std::function");
  expect_error([&] { case_({{yes, one}}, nullptr); }, Code::invalid_argument, "[case_] `otherwise` is an empty");
  expect_error([&] { cond(yes, one, empty); }, Code::invalid_argument, "[cond] branch 1 is an empty std::function");
  expect_error([&] { switch_case(0, {empty, one}); }, Code::invalid_argument, "[switch_case] branch 0 is an empty");
}

TEST(ControlFlowCalls, ErrorsNameTheFunctionThatWasCalled) {
  const Tensor two{true, false};
  both_ways([&] {
    auto by_vector = function([](const Tensor& c) {
      return case_({{c, [] { return Tensor(1); }}}, [] { return Tensor(2); });
    });
    expect_error([&] { by_vector(two); }, Code::invalid_argument, "[case_] a condition is one value");
    auto cond_by_vector = function([](const Tensor& c) {
      return cond(
          c, [] { return Tensor(1); }, [] { return Tensor(2); });
    });
    expect_error([&] { cond_by_vector(two); }, Code::invalid_argument, "[cond] a condition is one value");
  });
  auto of_two_types = function([](const Tensor& c) {
    return case_({{c, [] { return Tensor(1); }}}, [] { return Tensor(2.f); });
  });
  expect_error([&] { of_two_types(Tensor(true)); }, Code::invalid_argument, "[case_]");
  const auto one = [] { return Tensor(1); };
  EXPECT_NAMES_THIS_LINE(case_({{two, one}}, one));
  EXPECT_NAMES_THIS_LINE(cond(two, one, one));
}

}  // namespace
}  // namespace runnel
