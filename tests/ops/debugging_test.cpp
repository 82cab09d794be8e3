#include "runnel/ops/debugging.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runnel/runnel.h"
#include "tests/support/caller_lines.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(Debugging, WhatHoldsPasses) {
  const Tensor x{1.f, 2.f};
  debugging::assert_equal(x, Tensor{1.f, 2.f});
  debugging::assert_none_equal(x, 3);
  debugging::assert_less(x, 3);
  debugging::assert_less_equal(1, x);
  debugging::assert_greater(x, 0);
  debugging::assert_greater_equal(x, x);
  debugging::assert_near(x, x + 1e-7);
  debugging::assert_near(x, x + 0.1, {.atol = 0.2});
  debugging::assert_positive(x);
  debugging::assert_non_negative(zeros({2}));
  debugging::assert_negative(-x);
  debugging::assert_non_positive(zeros({2}));
  debugging::assert_rank(x, 1);
  debugging::assert_rank_at_least(x, 1);
  debugging::assert_scalar(5);
  debugging::assert_type(x, float32);
  EXPECT_EQ((debugging::assert_all_finite(x) * 2).to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(Debugging, WhatDoesNotHoldIsAnErrorWithTheValues) {
  const Tensor x{1.f, 2.f};
  expect_error(
      [&] {
        debugging::assert_equal(x, Tensor{1.f, 3.f}, {.message = "of the batch"});
      },
      Code::invalid_argument,
      R"(["of the batch"] ["the condition x == y does not hold for every element:"] ["x ="] [[1 2]])");
  EXPECT_NAMES_THIS_LINE((debugging::assert_equal(x, 5), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_none_equal(x, 2), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_less(x, 2), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_less_equal(x, 1), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_greater(x, 1), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_greater_equal(x, 2), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_near(x, x + 0.1), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_positive(x - 1), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_negative(x), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_non_negative(-x), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_non_positive(x), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_rank(x, 2), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_rank_at_least(x, 2), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_scalar(x), 0));
  EXPECT_NAMES_THIS_LINE((debugging::assert_type(x, int32), 0));
  EXPECT_NAMES_THIS_LINE(debugging::assert_all_finite(x / 0, "loss"));
}

TEST(Debugging, InAFunctionTheChecksRunWithIt) {
  auto f = function(
      [](const Tensor& x) {
        debugging::assert_positive(x);
        debugging::assert_rank(x, 0);
        return x * 2;
      },
      {.input_signature = {{PartialShape::unknown(), float32}}});
  EXPECT_EQ(f(Tensor(1.f)).item<float>(), 2);
  expect_error([&] { f(Tensor(-1.f)); }, Code::invalid_argument, "x > 0");
  expect_error([&] { f(Tensor{1.f}); }, Code::invalid_argument, "the rank must be 0");
}

TEST(OpNames, AreAlsoInTheirNamespaces) {
  EXPECT_EQ((linalg::matmul(Tensor{{2.f}}, Tensor{{3.f}}).item<float>()), 6);
  EXPECT_EQ(cast(Tensor(2.5), "int32").dtype(), int32);
  EXPECT_NAMES_THIS_LINE(cast(Tensor(2.5), "int33"));
  random::Generator g = random::Generator::from_seed(1);
  const Tensor state = g.state().value();
  const Tensor first = g.normal({2});
  g.reset(state);
  EXPECT_EQ(g.normal({2}).to_vector<float>(), first.to_vector<float>());
}

template <class X>
concept AddsInPlace = requires(X x) { static_cast<X&&>(x) += 1.f; };
template <class X>
concept SubtractsInPlace = requires(X x) { static_cast<X&&>(x) -= Tensor(1.f); };
template <class X>
concept MultipliesInPlace = requires(X x) { static_cast<X&&>(x) *= 2.f; };
template <class X>
concept DividesInPlace = requires(X x) { static_cast<X&&>(x) /= 2.f; };
template <class X>
concept ComputesInPlace = AddsInPlace<X> && SubtractsInPlace<X> && MultipliesInPlace<X> && DividesInPlace<X>;
template <class X>
concept NothingInPlace = !AddsInPlace<X> && !SubtractsInPlace<X> && !MultipliesInPlace<X> && !DividesInPlace<X>;

TEST(VariableOperators, OfAPartOrACopyOfTheValueDoNotCompile) {
  static_assert(ComputesInPlace<Tensor&> && ComputesInPlace<Variable&> && ComputesInPlace<const Variable&>);
  static_assert(NothingInPlace<Tensor> && NothingInPlace<const Tensor&>);
  const Variable w(zeros({2}));
  static_assert(NothingInPlace<decltype(w[0])> && NothingInPlace<decltype(w.value())>);
  static_assert(NothingInPlace<decltype(w.value()(slice(0, 1)))>);
}

const char* kind_of(const Variable&) { return "variable"; }
const char* kind_of(const Operand&) { return "value"; }

TEST(Variables, AreMadeOnlyWhereAskedFor) {
  static_assert(!std::is_convertible_v<Tensor, Variable> && std::is_constructible_v<Variable, Tensor>);
  static_assert(!std::is_assignable_v<Variable&, Tensor> && !std::is_assignable_v<Variable&, const Tensor&>);
  static_assert(!std::is_invocable_v<void (*)(Variable), Tensor>);
  const Variable w(ones({2}));
  EXPECT_STREQ(kind_of(w), "variable");
  EXPECT_STREQ(kind_of(w * 1.f), "value");
  for (const bool flag : {true, false}) {
    const Tensor chosen = flag ? w : zeros({2});
    EXPECT_EQ(reduce_sum(chosen).item<float>(), flag ? 2 : 0);
  }
}

TEST(VariableOperators, ReadPartsAndChangeTheValue) {
  Variable w(zeros({2}));
  const Variable same = w;
  w += Tensor{1.f, 1.f};
  w *= 6.f;
  w -= Tensor{1.f, 2.f};
  w /= 2;
  EXPECT_EQ(same.value().to_vector<float>(), (std::vector<float>{2.5, 2}));
  EXPECT_EQ(w[0].item<float>(), 2.5f);
  EXPECT_EQ(w(slice(1, none)).to_vector<float>(), (std::vector<float>{2}));
  EXPECT_NAMES_THIS_LINE(w[2]);
  EXPECT_NAMES_THIS_LINE(w += Tensor{1});
  GradientTape tape;
  const Tensor y = w[0] * 3;
  EXPECT_EQ(tape.gradient(y, w).value().to_vector<float>(), (std::vector<float>{3, 0}));
}

}  // namespace
}  // namespace runnel
