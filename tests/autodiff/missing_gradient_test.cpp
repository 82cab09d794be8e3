// Gradients that do not exist, and tapes that are asked too much: errors say of what and where.
#include <gtest/gtest.h>

#include "runnel/runnel.h"
#include "tests/support/caller_lines.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(MissingGradient, NamesItsSource) {
  const Variable used(2.f, {.name = "used"});
  const Variable unused(2.f, {.name = "unused"});
  const Tensor x(3.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = used * 2;
  const std::vector<Gradient> g = tape.gradient(y, {used, unused, x});
  EXPECT_TRUE(g[0]);
  EXPECT_TRUE(!g[1]);
  if (g[1]) FAIL() << "there is none";
  EXPECT_FALSE(g[1].defined());
  EXPECT_FALSE(g[1].dense().defined());
  const std::string by_unused = "there is no gradient by Variable 'unused': the target does not depend on it";
  expect_error([&] { g[1].value(); }, Code::failed_precondition, by_unused);
  expect_error([&] { g[1] * 2.f; }, Code::failed_precondition, by_unused);
  expect_error([&] { unused.assign_sub(g[1]); }, Code::failed_precondition, by_unused);
  expect_error([&] { add(g[1].dense(), x); }, Code::invalid_argument, by_unused);
  expect_error([&] { g[2].value(); }, Code::failed_precondition, "there is no gradient by a tensor, float32[]");
  EXPECT_NAMES_THIS_LINE(g[1].value());
  EXPECT_NAMES_THIS_LINE(g[1] * 2.f);
  EXPECT_EQ((g[0] * 2.f).item<float>(), 4);
}

TEST(MissingGradient, ATapeAskedTwiceNamesTheLine) {
  const Variable w(2.f);
  GradientTape tape;
  const Tensor y = w * 2;
  tape.gradient(y, w);
  EXPECT_NAMES_THIS_LINE(tape.gradient(y, w));
  EXPECT_NAMES_THIS_LINE(tape.gradient(y, {w}));
  EXPECT_NAMES_THIS_LINE(tape.gradient(y, std::vector<Variable>{w}));
  EXPECT_NAMES_THIS_LINE(tape.jacobian(y, w));
  GradientTape other;
  EXPECT_NAMES_THIS_LINE(other.gradient(Tensor(), w));
  EXPECT_NAMES_THIS_LINE(other.gradient(y, w, Tensor{1.f, 2.f}));
}

}  // namespace
}  // namespace runnel
