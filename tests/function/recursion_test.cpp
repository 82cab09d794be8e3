// Functions that call themselves: values, captured variables, and derivatives to second order.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runnel/function/traced_blocks.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/small_stack.h"

namespace runnel {
namespace {

Tensor scalar(double x) { return Tensor::of<double>({x}, Shape{}); }

using F = std::function<Tensor(Tensor, Tensor)>;

// x to the power of n, by n multiplications.
F power() {
  auto self = std::make_shared<F>();
  auto f = function([weak = std::weak_ptr<F>(self)](const Tensor& x, const Tensor& n) -> Tensor {
    return cond(
        n > 0, [&] { return x * (*weak.lock())(x, n - 1); }, [&] { return ones_like(x); });
  });
  *self = f;
  return [self](const Tensor& x, const Tensor& n) { return (*self)(x, n); };
}

TEST(Recursion, FirstDerivative) {
  const F f = power();
  const Tensor x = Tensor::of<double>({2.0, 3.0});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x, Tensor(4));
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{16, 81}));
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<double>(), (std::vector<double>{32, 108}));
}

TEST(Recursion, ForEveryDepthOneTrace) {
  const F f = power();
  for (int n = 0; n < 6; ++n) {
    const Tensor x = scalar(1.5);
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x, Tensor(n));
    EXPECT_DOUBLE_EQ(y.item<double>(), std::pow(1.5, n));
    EXPECT_DOUBLE_EQ(Tensor(tape.gradient(y, x, {}, UnconnectedGradients::zero)).item<double>(),
                     n * std::pow(1.5, n - 1));
  }
}

TEST(Recursion, SecondDerivative) {
  const F f = power();
  const Tensor x = scalar(1.5);
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor y = f(x, Tensor(5));
  const Tensor d = inner.gradient(y, x);
  EXPECT_DOUBLE_EQ(d.item<double>(), 5 * std::pow(1.5, 4));
  EXPECT_DOUBLE_EQ(Tensor(outer.gradient(d, x)).item<double>(), 20 * std::pow(1.5, 3));
}

TEST(Recursion, ThirdDerivativeOfALoopInABranch) {
  auto f = function([](const Tensor& x) {
    return cond(
        x > 0,
        [&] {
          return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 4; },
                                        [&](const Tensor& i, const Tensor& y) {
                                          return std::tuple{i + 1, y * x};
                                        },
                                        std::tuple{Tensor(0), x}));
        },
        [&] { return x * 2.0; });
  });
  const Tensor x = scalar(1.5);
  GradientTape third, second, first;
  for (GradientTape* tape : {&third, &second, &first}) tape->watch(x);
  const Tensor y = f(x);
  const Tensor d = first.gradient(y, x);
  const Tensor dd = second.gradient(d, x);
  EXPECT_DOUBLE_EQ(y.item<double>(), std::pow(1.5, 5));
  EXPECT_DOUBLE_EQ(d.item<double>(), 5 * std::pow(1.5, 4));
  EXPECT_DOUBLE_EQ(dd.item<double>(), 20 * std::pow(1.5, 3));
  EXPECT_DOUBLE_EQ(Tensor(third.gradient(dd, x)).item<double>(), 60 * std::pow(1.5, 2));
}

TEST(Recursion, SecondDerivativeInsideAFunction) {
  const F f = power();
  auto both = function([&](const Tensor& x) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    const Tensor y = f(sin(x), Tensor(3));
    const Tensor d = inner.gradient(y, x);
    return std::tuple{y, d, Tensor(outer.gradient(d, x))};
  });
  for (const double at : {0.7, -0.3}) {
    const auto [y, d, dd] = both(scalar(at));
    const double s = std::sin(at), c = std::cos(at);
    EXPECT_NEAR(y.item<double>(), s * s * s, 1e-12);
    EXPECT_NEAR(d.item<double>(), 3 * s * s * c, 1e-12);
    EXPECT_NEAR(dd.item<double>(), 6 * s * c * c - 3 * s * s * s, 1e-12);
  }
}

// Two calls in one body, whose results are needed by the derivative.
TEST(Recursion, ATreeOfCalls) {
  auto self = std::make_shared<F>();
  auto f = function([weak = std::weak_ptr<F>(self)](const Tensor& x, const Tensor& n) -> Tensor {
    return cond(
        n < 2, [&] { return x + 0.0; },
        [&] {
          const F& g = *weak.lock();
          return g(x, n - 1) * g(sin(x), n - 2);
        });
  });
  *self = f;
  const std::function<double(double, int)> plain = [&](double x, int n) {
    return n < 2 ? x : plain(x, n - 1) * plain(std::sin(x), n - 2);
  };
  const Tensor x = scalar(0.8);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = (*self)(x, Tensor(6));
  EXPECT_NEAR(y.item<double>(), plain(0.8, 6), 1e-12);
  const double h = 1e-6;
  EXPECT_NEAR(Tensor(tape.gradient(y, x)).item<double>(), (plain(0.8 + h, 6) - plain(0.8 - h, 6)) / (2 * h), 1e-8);
}

TEST(Recursion, CapturedVariablesHaveGradients) {
  const Variable w(scalar(1.5));
  auto self = std::make_shared<F>();
  auto f = function([&w, weak = std::weak_ptr<F>(self)](const Tensor& x, const Tensor& n) -> Tensor {
    return cond(
        n > 0, [&] { return w * (*weak.lock())(x, n - 1); }, [&] { return x + 0.0; });
  });
  *self = f;
  const Tensor x = scalar(2.0);
  GradientTape outer;
  GradientTape tape;
  tape.watch(x);
  const Tensor y = (*self)(x, Tensor(3));
  EXPECT_DOUBLE_EQ(y.item<double>(), 2 * std::pow(1.5, 3));
  const auto g = tape.gradient({y}, {GradSource(x), GradSource(w)});
  EXPECT_DOUBLE_EQ(g[0].value().item<double>(), std::pow(1.5, 3));
  EXPECT_DOUBLE_EQ(g[1].value().item<double>(), 6 * 1.5 * 1.5);
  EXPECT_DOUBLE_EQ(Tensor(outer.gradient(g[1].value(), w)).item<double>(), 12 * 1.5);
}

TEST(Recursion, EffectsHappenOnceUnderATape) {
  const Variable count(Tensor(0));
  auto self = std::make_shared<F>();
  auto f = function([&count, weak = std::weak_ptr<F>(self)](const Tensor& x, const Tensor& n) -> Tensor {
    count.assign_add(Tensor(1));
    return cond(
        n > 0, [&] { return x * (*weak.lock())(x, n - 1); }, [&] { return x + 0.0; });
  });
  *self = f;
  const Tensor x = scalar(2.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = (*self)(x, Tensor(3));
  EXPECT_EQ(count.value().item<int32_t>(), 4);
  EXPECT_DOUBLE_EQ(Tensor(tape.gradient(y, x)).item<double>(), 32);
  EXPECT_EQ(count.value().item<int32_t>(), 4);
}

TEST(Recursion, TheDerivativeOfItselfInsideItselfSaysWhatToDo) {
  auto self = std::make_shared<F>();
  auto f = function([weak = std::weak_ptr<F>(self)](const Tensor& x, const Tensor& n) -> Tensor {
    return cond(
        n > 0,
        [&] {
          GradientTape tape;
          tape.watch(x);
          return Tensor(tape.gradient((*weak.lock())(x, n - 1) * x, x));
        },
        [&] { return x + 0.0; });
  });
  *self = f;
  try {
    (*self)(scalar(2.0), Tensor(2));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("take the gradient outside"), std::string::npos) << e.what();
  }
}

// A function that goes into itself without end through a step of the library, which calls what it is given.
using Endless = std::function<Tensor(const Tensor&)>;
using EndlessStep = std::function<Tensor(const Endless& self, const Tensor& x)>;

void expect_stack_error(const EndlessStep& step, bool also_traced) {
  Endless self;
  self = [&](const Tensor& x) { return step(self, x); };
  test::on_small_stack([&] {
    test::expect_error([&] { self(Tensor(1.f)); }, Code::resource_exhausted, "used up the stack");
    if (!also_traced) return;
    auto traced = function([&](const Tensor& x) { return self(x); });
    test::expect_error([&] { traced(Tensor(1.f)); }, Code::resource_exhausted, "must come to an end");
  });
}

TEST(Recursion, WithoutEndThroughControlFlowIsAnError) {
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        return cond(
            x > 0, [&] { return self(x); }, [&] { return x + 0; });
      },
      true);
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        return switch_case(cast(x, DType::int32), {[&] { return x + 0; }, [&] { return self(x); }});
      },
      true);
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        return case_({Case{x > 0, [&] { return self(x); }}}, [&] { return x + 0; });
      },
      true);
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        return while_loop([](const Tensor& y) { return y < 2; }, [&](const Tensor& y) { return self(y) + 1; }, x);
      },
      true);
  expect_stack_error([](const Endless& self, const Tensor& x) { return map_fn(self, expand_dims(x, 0))[0]; }, true);
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        return foldl([&](const Tensor& sum, const Tensor& e) { return sum + self(e); }, expand_dims(x, 0), x);
      },
      true);
}

TEST(Recursion, TheMostThatBodiesMayBeNestedIsNamed) {
  std::function<Tensor(const Tensor&, int)> nested = [&](const Tensor& x, int n) -> Tensor {
    if (n == 0) return x + 1;
    return cond(
        x > 0, [&] { return nested(x, n - 1); }, [&] { return x + 0; });
  };
  auto shallow = function([&](const Tensor& x) { return nested(x, 40); });
  EXPECT_EQ(shallow(Tensor(1.f)).item<float>(), 2);
  auto deep = function([&](const Tensor& x) { return nested(x, 300); });
  test::expect_error([&] { deep(Tensor(1.f)); }, Code::resource_exhausted, "more than 256 deep inside one another");
}

TEST(Recursion, WithoutEndThroughBlocksIsAnError) {
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        Tensor y = x;
        IF(x > 0) { y = self(x); }
        return y;
      },
      true);
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        Tensor y = x;
        WHILE(y < 2) { y = self(y) + 1; }
        return y;
      },
      true);
}

TEST(Recursion, WithoutEndThroughCallbacksIsAnError) {
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        return host_call([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{self(in[0])}; }, {x},
                         {DType::float32})[0];
      },
      false);
  expect_stack_error(
      [](const Endless& self, const Tensor& x) {
        return custom_gradient(
            [&](const std::vector<Tensor>& in) -> CustomGradient {
              return {self(in[0]), [](const Tensor& dy) { return Gradients{dy}; }};
            },
            {x});
      },
      false);
}

}  // namespace
}  // namespace runnel
