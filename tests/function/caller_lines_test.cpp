// Errors of concrete functions and of tapes name the line of the program that made the mistake.
#include "tests/support/caller_lines.h"

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

TEST(FunctionCallerLines, ConcreteFunctions) {
  const ConcreteFunction none;
  EXPECT_NAMES_THIS_LINE(none.name());
  EXPECT_NAMES_THIS_LINE(none.graph());
  EXPECT_NAMES_THIS_LINE(none.inputs());
  EXPECT_NAMES_THIS_LINE(none.outputs());
  EXPECT_NAMES_THIS_LINE(none.captured_inputs());
  EXPECT_NAMES_THIS_LINE(none.captured_variables());
  EXPECT_NAMES_THIS_LINE(none.trainable_variables());
  EXPECT_NAMES_THIS_LINE(none.num_outputs());
  EXPECT_NAMES_THIS_LINE(none.to_text());
  EXPECT_NAMES_THIS_LINE(none({}));
  const auto f = function([](const Tensor& x) { return x * 2; });
  const ConcreteFunction made = f.get_concrete_function(Tensor{1.f});
  EXPECT_NAMES_THIS_LINE(made({}));
  EXPECT_NAMES_THIS_LINE(made({Tensor{1, 2}}));
}

TEST(FunctionCallerLines, Tapes) {
  const Tensor x{1.f, 2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  EXPECT_NAMES_THIS_LINE(tape.watch(Tensor(1)));
  EXPECT_NAMES_THIS_LINE(tape.watch(Tensor()));
  EXPECT_NAMES_THIS_LINE(tape.watch(std::vector<Tensor>{Tensor(1)}));
  EXPECT_NAMES_THIS_LINE(tape.watch(Variable()));
  EXPECT_NAMES_THIS_LINE(tape.gradient(Tensor(), x));
  EXPECT_NAMES_THIS_LINE(tape.gradient(y, x, Tensor{1.f, 2.f, 3.f}));
  EXPECT_NAMES_THIS_LINE(tape.jacobian(Tensor(), x));
  GradientTape once;
  once.watch(x);
  once.gradient(x * 2, x);
  EXPECT_NAMES_THIS_LINE(once.gradient(x * 2, x));
  EXPECT_NAMES_THIS_LINE(once.jacobian(x * 2, x));
  const auto wrong = [](const std::vector<Tensor>& in) {
    return CustomGradient{in[0] * 2, [](const Tensor&) { return Gradients{}; }};
  };
  tape.watch(x);
  const Tensor z = custom_gradient(wrong, {x});
  EXPECT_NAMES_THIS_LINE(tape.gradient(z, x));
  const Variable v(x);
  EXPECT_NAMES_THIS_LINE(custom_gradient([&](const auto& in) { return CustomGradient{in[0] * v, {}}; }, {x}));
}

}  // namespace
}  // namespace runnel
