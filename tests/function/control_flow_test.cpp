// cond, switch_case, while_loop and what is built on them, eager and traced, with derivatives to second order.
#include "runnel/function/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

template <class F>
void same_traced(F f, const std::vector<Tensor>& xs) {
  auto g = function(f);
  for (const Tensor& x : xs) EXPECT_EQ(f(x).template to_vector<float>(), g(x).template to_vector<float>());
  EXPECT_EQ(g.num_traces(), 1);
}

// First and second derivative at x by a tape around the traced function, and by tapes inside it.
template <class F>
void derivatives(F f, float x, double first, double second) {
  const Tensor at(x);
  auto g = function(f);
  {
    GradientTape outer;
    outer.watch(at);
    Tensor d;
    {
      GradientTape inner;
      inner.watch(at);
      d = inner.gradient(g(at), at);
    }
    EXPECT_NEAR(d.item<float>(), first, 1e-4 * std::max(1.0, std::abs(first)));
    const Gradient dd = outer.gradient(d, at);
    EXPECT_NEAR(dd.defined() ? dd.value().item<float>() : 0, second, 1e-4 * std::max(1.0, std::abs(second)));
  }
  auto inside = function([&](const Tensor& t) {
    GradientTape outer;
    outer.watch(t);
    Tensor d;
    {
      GradientTape inner;
      inner.watch(t);
      d = inner.gradient(f(t), t);
    }
    return std::pair{d, outer.gradient(d, GradSource(t), {}, UnconnectedGradients::zero).value()};
  });
  const std::pair<Tensor, Tensor> both = inside(at);
  EXPECT_NEAR(both.first.item<float>(), first, 1e-4 * std::max(1.0, std::abs(first)));
  EXPECT_NEAR(both.second.item<float>(), second, 1e-4 * std::max(1.0, std::abs(second)));
}

TEST(Cond, EagerAndTraced) {
  same_traced(
      [](const Tensor& x) {
        return cond(
            x > 0, [&] { return x * 2; }, [&] { return -x; });
      },
      {Tensor(1.f), Tensor(-3.f), Tensor(0.f)});
}

TEST(Cond, StructuresAndCaptures) {
  const Tensor k(10.f);
  auto f = function([&](const Tensor& x, const Tensor& y) {
    return cond(
        x > y,
        [&] {
          return std::pair{x, k + y};
        },
        [&] {
          return std::pair{y, x};
        });
  });
  const auto [a, b] = f(Tensor(3.f), Tensor(1.f));
  EXPECT_EQ(a.item<float>(), 3);
  EXPECT_EQ(b.item<float>(), 11);
  const auto [c, d] = f(Tensor(1.f), Tensor(3.f));
  EXPECT_EQ(c.item<float>(), 3);
  EXPECT_EQ(d.item<float>(), 1);
}

TEST(Cond, OnlyTheTakenArmHasEffects) {
  const Variable v(0.f);
  auto f = function([&](const Tensor& x) {
    cond(
        x > 0, [&] { v.assign_add(x); }, [&] { v.assign(100.f); });
    return v.value();
  });
  EXPECT_EQ(f(Tensor(2.f)).item<float>(), 2);
  EXPECT_EQ(f(Tensor(2.f)).item<float>(), 4);
  EXPECT_EQ(f(Tensor(-1.f)).item<float>(), 100);
}

TEST(Cond, ArmsMustAgree) {
  auto f = function([](const Tensor& x) {
    return cond(
        x > 0, [&] { return x; }, [&] { return cast(x, DType::int32); });
  });
  EXPECT_THROW(f(Tensor(1.f)), Error);
}

TEST(Cond, Derivatives) {
  const auto f = [](const Tensor& x) {
    return cond(
        x > 0, [&] { return x * x * x; }, [&] { return exp(x) * x; });
  };
  derivatives(f, 2.f, 12, 12);
  derivatives(f, -1.f, 0, std::exp(-1.0));
}

TEST(Cond, DerivativeByVariables) {
  const Variable v(3.f);
  auto f = function([&](const Tensor& x) {
    return cond(
        x > 0, [&] { return v * v * x; }, [&] { return x; });
  });
  for (const float x : {2.f, -2.f}) {
    GradientTape tape;
    const Tensor y = f(Tensor(x));
    EXPECT_EQ(tape.gradient(y, v).value().item<float>(), x > 0 ? 12 : 0);
  }
}

TEST(SwitchCase, PicksAndDifferentiates) {
  const auto f = [](const Tensor& x) {
    return switch_case(
        cast(x, DType::int32),
        std::vector<std::function<Tensor()>>{[&] { return x * 2; }, [&] { return x * x; }, [&] { return exp(x); }});
  };
  same_traced(f, {Tensor(0.5f), Tensor(1.5f), Tensor(2.5f), Tensor(7.f)});
  derivatives(f, 0.5f, 2, 0);
  derivatives(f, 1.5f, 3, 2);
}

TEST(WhileLoop, EagerAndTraced) {
  same_traced(
      [](const Tensor& n) {
        const auto [i, s] = while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                       [&](const Tensor& i, const Tensor& s) {
                                         return std::tuple{i + 1, s + i * i};
                                       },
                                       std::tuple{Tensor(0.f), Tensor(0.f)});
        return s;
      },
      {Tensor(0.f), Tensor(1.f), Tensor(10.f)});
}

TEST(WhileLoop, ShapesAreRelaxed) {
  auto f = function([](const Tensor& n) {
    const auto [i, x] = while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                   [&](const Tensor& i, const Tensor& x) {
                                     return std::tuple{i + 1, concat({x, x}, 0)};
                                   },
                                   std::tuple{Tensor(0), Tensor{1.f, 2.f}});
    EXPECT_EQ(x.partial_shape(), (PartialShape{kUnknownDim}));
    return x;
  });
  EXPECT_EQ(f(Tensor(3)).shape(), (Shape{16}));
  EXPECT_EQ(f(Tensor(0)).shape(), (Shape{2}));
}

TEST(WhileLoop, MaximumIterations) {
  auto f = function([](const Tensor& x) {
    return while_loop([](const Tensor&) { return Tensor(true); }, [](const Tensor& y) { return y * 2; }, x,
                      {.maximum_iterations = 5});
  });
  EXPECT_EQ(f(Tensor(1.f)).item<float>(), 32);
}

TEST(WhileLoop, Derivatives) {
  // x^8 by three squarings.
  const auto f = [](const Tensor& x) {
    const auto [i, y] = while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                   [](const Tensor& i, const Tensor& y) {
                                     return std::tuple{i + 1, y * y};
                                   },
                                   std::tuple{Tensor(0), x});
    return y;
  };
  derivatives(f, 1.5f, 8 * std::pow(1.5, 7), 56 * std::pow(1.5, 6));
}

TEST(WhileLoop, DerivativesByWhatIsCaptured) {
  // x^n with n known only at run time: x is used by every iteration.
  const auto f = [](const Tensor& x) {
    const Tensor n = cast(x * 0 + 5, DType::int32);
    const auto [i, y] = while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                   [&](const Tensor& i, const Tensor& y) {
                                     return std::tuple{i + 1, y * x};
                                   },
                                   std::tuple{Tensor(0), Tensor(1.f)});
    return y;
  };
  derivatives(f, 1.5f, 5 * std::pow(1.5, 4), 20 * std::pow(1.5, 3));
}

TEST(WhileLoop, CondInsideAndVariables) {
  const Variable w(2.f);
  auto f = function([&](const Tensor& x) {
    const auto [i, y] =
        while_loop([](const Tensor& i, const Tensor&) { return i < 4; },
                   [&](const Tensor& i, const Tensor& y) {
                     return std::tuple{i + 1, cond(
                                                  y > 10, [&] { return y - w; }, [&] { return y * w; })};
                   },
                   std::tuple{Tensor(0), x});
    return y;
  });
  GradientTape tape;
  const Tensor x(3.f);
  tape.watch(x);
  const Tensor y = f(x);  // 6, 12, 10, 20: ((x w w - w) w)
  EXPECT_EQ(y.item<float>(), 20);
  const auto g = tape.gradient(y, {x, w});
  EXPECT_FLOAT_EQ(g[0].value().item<float>(), 8);
  EXPECT_FLOAT_EQ(g[1].value().item<float>(), 3 * 3 * 4 - 2 * 2);
}

TEST(WhileLoop, DerivativesOfLoopsInLoops) {
  // Twice x -> x^4: x^16; the inner loop's bound is known at run time only.
  const auto f = [](const Tensor& x) {
    const Tensor n = cast(x * 0 + 2, DType::int32);
    const auto squared = [&](const Tensor& start) {
      return std::get<1>(while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                    [&](const Tensor& i, const Tensor& y) {
                                      return std::tuple{i + 1, y * y};
                                    },
                                    std::tuple{Tensor(0), start}));
    };
    return std::get<1>(while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                  [&](const Tensor& i, const Tensor& y) {
                                    return std::tuple{i + 1, squared(y)};
                                  },
                                  std::tuple{Tensor(0), x}));
  };
  derivatives(f, 1.1f, 16 * std::pow(1.1, 15), 240 * std::pow(1.1, 14));
}

TEST(MapFn, SecondDerivativeWithoutKnownShapes) {
  auto f = function(
      [](const Tensor& x) {
        GradientTape outer;
        outer.watch(x);
        Tensor d;
        {
          GradientTape inner;
          inner.watch(x);
          d = inner.gradient(map_fn([](const Tensor& row) { return row * row * row + reduce_sum(row); }, x), x);
        }
        return outer.gradient(d, x).value();
      },
      {.input_signature = {{{kUnknownDim, kUnknownDim}, DType::float32}}});
  EXPECT_EQ(f(Tensor{{1.f, 2.f}, {3.f, 4.f}}).to_vector<float>(), (std::vector<float>{6, 12, 18, 24}));
}

TEST(MapFn, ScanAndFoldl) {
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}};
  same_traced([](const Tensor& t) { return map_fn([](const Tensor& row) { return reduce_sum(row) * row; }, t); }, {x});
  same_traced([](const Tensor& t) { return scan([](const Tensor& a, const Tensor& r) { return a * 2 + r; }, t, t[0]); },
              {x});
  same_traced([](const Tensor& t) { return foldl([](const Tensor& a, const Tensor& r) { return a * r; }, t, t[0]); },
              {x});
  auto f = function([](const Tensor& t) {
    return reduce_sum(scan([](const Tensor& a, const Tensor& r) { return a * r; }, t, ones_like(t[0])));
  });
  GradientTape tape;
  const Tensor v{2.f, 3.f, 4.f};
  tape.watch(v);
  EXPECT_EQ(tape.gradient(f(v), v).value().to_vector<float>(), (std::vector<float>{1 + 3 + 12, 2 + 8, 6}));
}

TEST(Recursion, AFunctionCallsItself) {
  std::function<Tensor(const Tensor&)> self;
  auto f = function([&](const Tensor& n) {
    return cond(
        n < 2, [&] { return n; }, [&] { return self(n - 1) + self(n - 2); });
  });
  self = [&](const Tensor& n) { return f(n); };
  EXPECT_EQ(f(Tensor(10)).item<int32_t>(), 55);
  EXPECT_EQ(f(Tensor(15)).item<int32_t>(), 610);
  EXPECT_EQ(f.num_traces(), 1);
}

TEST(WhileLoop, ShapeInvariantsMustFitWhatItBeginsWith) {
  const auto loop = [](const std::vector<PartialShape>& invariants) {
    const auto f = function([&](const Tensor& x) {
      return while_loop([](const Tensor& s) { return reduce_sum(s) < 10.f; },
                        [](const Tensor& s) { return s + cast(shape(s)[1], DType::float32); }, x,
                        {.shape_invariants = invariants});
    });
    return f(zeros({2, 4}));
  };
  test::expect_error(
      [&] {
        loop({PartialShape{kUnknownDim, 3}});
      },
      Code::invalid_argument, "has the shape invariant [?,3], but is [2,4] before the loop");
  test::expect_error(
      [&] {
        loop({PartialShape{kUnknownDim, 4}, PartialShape{}});
      },
      Code::invalid_argument, "2 shape invariants for 1 tensors");
  EXPECT_EQ(loop({PartialShape{kUnknownDim, 4}}).to_vector<float>()[0], 4.f);
}

TEST(SwitchCase, WithoutBranchesIsAnError) {
  const std::vector<std::function<Tensor()>> none;
  for (const char* text : {"[switch_case] there are no branches", "control_flow_test.cpp:"}) {
    test::expect_error([&] { switch_case(Tensor(0), none); }, Code::invalid_argument, text);
    test::expect_error([&] { function([&](const Tensor& i) { return switch_case(i, none); })(Tensor(0)); },
                       Code::invalid_argument, text);
  }
}

TEST(Tracing, ComputesNoLargeValues) {
  const auto f = function([](const Tensor& n) { return fill({int64_t{1} << 40}, n)[0]; });
  EXPECT_EQ(f.get_concrete_function(TensorSpec{PartialShape{}, DType::int32}).outputs().size(), 1u);
}

}  // namespace
}  // namespace runnel
