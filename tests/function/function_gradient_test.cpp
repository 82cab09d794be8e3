// Gradients inside functions, of functions, and of both to second order.
#include <gtest/gtest.h>

#include <cmath>

#include "runnel/function/control_flow.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

TEST(FunctionGradient, TapeInside) {
  auto f = function([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(x * x * x, x).value();
  });
  EXPECT_FLOAT_EQ(f(Tensor(2.f)).item<float>(), 12);
  EXPECT_FLOAT_EQ(f(Tensor(3.f)).item<float>(), 27);
}

TEST(FunctionGradient, TapeOutside) {
  auto f = function([](const Tensor& x) { return x * x * x + exp(x); });
  for (int i = 0; i < 2; ++i) {
    GradientTape tape;
    const Tensor x(2.f);
    tape.watch(x);
    const Tensor y = f(x);
    EXPECT_FLOAT_EQ(tape.gradient(y, x).value().item<float>(), 12 + std::exp(2.f));
  }
}

TEST(FunctionGradient, OfVariables) {
  const Variable w(3.f);
  const Variable b(1.f, {.trainable = false});
  auto f = function([&](const Tensor& x) { return w * w * x + b; });
  GradientTape tape;
  const Tensor y = f(Tensor(2.f));
  const auto g = tape.gradient(y, {w, b});
  EXPECT_FLOAT_EQ(g[0].value().item<float>(), 12);
  EXPECT_FALSE(g[1].defined());
}

TEST(FunctionGradient, SecondOrderOutside) {
  auto f = function([](const Tensor& x) { return sin(x) * x * x; });
  GradientTape outer;
  const Tensor x(0.7);
  outer.watch(x);
  Tensor g;
  {
    GradientTape inner;
    inner.watch(x);
    g = inner.gradient(f(x), x);
  }
  const double v = 0.7;
  EXPECT_NEAR(g.item<float>(), std::cos(v) * v * v + 2 * v * std::sin(v), 1e-5);
  EXPECT_NEAR(outer.gradient(g, x).value().item<float>(), -std::sin(v) * v * v + 4 * v * std::cos(v) + 2 * std::sin(v),
              1e-5);
}

TEST(FunctionGradient, SecondOrderMixed) {
  auto gradient_of_cube = function([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(x * x * x, x).value();
  });
  GradientTape tape;
  const Tensor x(2.f);
  tape.watch(x);
  EXPECT_FLOAT_EQ(tape.gradient(gradient_of_cube(x), x).value().item<float>(), 12);
  auto both = function([&](const Tensor& t) {
    GradientTape inside;
    inside.watch(t);
    return inside.gradient(gradient_of_cube(t), t).value();
  });
  EXPECT_FLOAT_EQ(both(Tensor(3.f)).item<float>(), 18);
}

TEST(FunctionGradient, SparseGradientsStaySparse) {
  const Variable table(Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  auto f = function([&](const Tensor& at) { return reduce_sum(table.sparse_read(at) * 2); });
  GradientTape tape;
  const Tensor y = f(Tensor{0, 2});
  EXPECT_FLOAT_EQ(y.item<float>(), 28);
  const Gradient g = tape.gradient(y, table);
  ASSERT_TRUE(g.is_slices());
  EXPECT_EQ(g.slices().indices.to_vector<int32_t>(), (std::vector<int32_t>{0, 2}));
}

TEST(FunctionGradient, TrainingStep) {
  const Variable w(Tensor{{0.f}, {0.f}});
  const Variable b(0.f);
  auto step = function([&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = reduce_mean(square(matmul(x, w) + b - y));
    const auto grads = tape.gradient(loss, std::vector<Variable>{w, b});
    w.assign_sub(grads[0].value() * 0.1f);
    b.assign_sub(grads[1].value() * 0.1f);
    return loss;
  });
  const Tensor x{{1.f, 0.f}, {0.f, 1.f}, {1.f, 1.f}, {2.f, 1.f}};
  const Tensor y{{3.f}, {-1.f}, {1.f}, {3.f}};  // 2 a - 2 c + 1
  float loss = 0;
  for (int i = 0; i < 800; ++i) loss = step(x, y).item<float>();
  EXPECT_LT(loss, 1e-4);
  EXPECT_NEAR(w.value()[0][0].item<float>(), 2, 0.05);
}

TEST(FunctionGradient, SeveralOutputsAndUnknownShapes) {
  auto f = function(
      [](const Tensor& x, const Tensor& y) {
        return std::pair{x * y, reduce_sum(x, 0) + 1};
      },
      {.input_signature = {{{kUnknownDim, 2}, DType::float32}, {{1, 2}, DType::float32}}});
  GradientTape tape({.persistent = true});
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}};
  const Tensor y{{10.f, 20.f}};
  tape.watch(x);
  tape.watch(y);
  const auto [a, b] = f(x, y);
  EXPECT_EQ(tape.gradient(a, x).value().to_vector<float>(), (std::vector<float>{10, 20, 10, 20}));
  EXPECT_EQ(tape.gradient(a, y).value().to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(tape.gradient(b, x).value().to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_FALSE(tape.gradient(b, y).defined());
}

// Tapes around a call tell its outputs from its inputs and from each other, though they are the same values.
TEST(FunctionGradient, InputsGivenBackAndOutputsGivenTwice) {
  const Variable v(5.f);
  auto f = function([&](const Tensor& x) {
    const Tensor y = x * 2;
    return std::vector<Tensor>{x, stop_gradient(x), y, y, identity(x), v.value()};
  });
  const auto derivatives = [&](size_t k) {
    GradientTape tape;
    const Tensor x(3.f);
    tape.watch(x);
    const std::vector<Tensor> y = f(x);
    const auto g = tape.gradient(y[k] * 10, {x, v}, {}, UnconnectedGradients::zero);
    return std::pair{g[0].value().item<float>(), g[1].value().item<float>()};
  };
  EXPECT_EQ(derivatives(0), std::pair(10.f, 0.f));
  EXPECT_EQ(derivatives(1), std::pair(0.f, 0.f));
  EXPECT_EQ(derivatives(2), std::pair(20.f, 0.f));
  EXPECT_EQ(derivatives(3), std::pair(20.f, 0.f));
  EXPECT_EQ(derivatives(4), std::pair(10.f, 0.f));
  EXPECT_EQ(derivatives(5), std::pair(0.f, 10.f));
  GradientTape tape;
  const Tensor x(3.f);
  tape.watch(x);
  const std::vector<Tensor> y = f(x);
  EXPECT_EQ(tape.gradient(y[0] + y[2] + y[3] * 3, x).value().item<float>(), 1 + 2 + 6);
}

// Where not even ranks are known while the gradients are written down.
template <class F>
void same_without_ranks(F f, const Tensor& x) {
  GradientTape eager;
  eager.watch(x);
  const Tensor expected = eager.gradient(f(x), x);
  auto g = function(
      [&](const Tensor& t) {
        GradientTape tape;
        tape.watch(t);
        return tape.gradient(f(t), t).value();
      },
      {.input_signature = {{PartialShape::unknown(), x.dtype()}}});
  EXPECT_EQ(g(x).template to_vector<float>(), expected.template to_vector<float>());
  EXPECT_EQ(g(x).shape(), x.shape());
}

TEST(FunctionGradient, UnknownRanks) {
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}};
  same_without_ranks([](const Tensor& t) { return square(concat({t, t * 2}, -1)); }, x);
  same_without_ranks([](const Tensor& t) { return square(tile(t, {2, 3})); }, x);
  same_without_ranks([](const Tensor& t) { return square(gather(t, Tensor{1, 1, 0})); }, x);
  same_without_ranks([](const Tensor& t) { return reduce_mean(t * t) + reduce_max(t); }, x);
  same_without_ranks([](const Tensor& t) { return transpose(reshape(t, {4, 1})) * t[0][1]; }, x);
}

TEST(FunctionGradient, UnknownRanksOfGathersAndEllipses) {
  const Tensor x = reshape(range(24.f), {2, 3, 4}) * 0.1f;
  same_without_ranks([](const Tensor& t) { return square(gather(t, Tensor{2, 0, 2}, 1)); }, x);
  same_without_ranks([](const Tensor& t) { return square(gather(t, Tensor{{3, 0}, {1, 1}}, -1)); }, x);
  same_without_ranks([](const Tensor& t) { return square(gather(t, Tensor{{0, 2}, {1, 1}}, 1, 1)); }, x);
  const Tensor w{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}, {7.f, 8.f}};
  same_without_ranks([&](const Tensor& t) { return einsum("...ij,jk->...ik", t, w); }, x);
  same_without_ranks([&](const Tensor& t) { return einsum("i...j->...ji", t) * 2; }, x);
  same_without_ranks([&](const Tensor& t) { return einsum("...i,...i->...", t, t); }, x);
  // Operands whose ellipses broadcast.
  const Tensor row = reshape(range(4.f), {1, 4});
  same_without_ranks([&](const Tensor& t) { return einsum("...i,...i->...", t, row); }, x);
  same_without_ranks([&](const Tensor& t) { return einsum("...,...->...", row, t); }, x);
}

// The rows of a gradient are counted in int64, a shape that is not known in int32.
TEST(FunctionGradient, SlicesOfUnknownShapes) {
  auto f = function(
      [](const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        return tape.gradient(square(boolean_mask(x, x > 1.5f)), x).value();
      },
      {.input_signature = {{{kUnknownDim}, DType::float32}}});
  EXPECT_EQ(f(Tensor{1.f, 2.f, 3.f}).to_vector<float>(), (std::vector<float>{0, 4, 6}));
}

TEST(FunctionGradient, OfAnOpWithMoreInputsThanSixteenBitsCount) {
  std::vector<Tensor> parts;
  for (int i = 0; i < 66'000; ++i) parts.emplace_back(static_cast<float>(i % 7));
  auto f = function([](const std::vector<Tensor>& all) {
    const Tensor stacked = stack(all);
    return reduce_sum(stacked * stacked);
  });
  for (const size_t i : {size_t{5}, parts.size() - 1}) {
    GradientTape tape;
    tape.watch(parts[i]);
    const Gradient g = tape.gradient(f(parts), parts[i]);
    ASSERT_TRUE(g.defined());
    EXPECT_EQ(g.value().item<float>(), 2 * parts[i].item<float>());
  }
}

}  // namespace
}  // namespace runnel
