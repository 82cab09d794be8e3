// TensorArrays as arguments, results and loop variables of traced functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/function/control_flow.h"
#include "runnel/function/function.h"
#include "runnel/ops/tensor_list.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using ::testing::ElementsAre;

TEST(TensorArrayInFunctions, AsArgumentAndResult) {
  auto f = function([](const TensorArray& ta, const Tensor& x) { return ta.write(1, x + ta.read(0)); });
  const TensorArray start = TensorArray(float32, 2).write(0, 1.f);
  const TensorArray end = f(start, Tensor(5.f));
  EXPECT_THAT(end.stack().to_vector<float>(), ElementsAre(1, 6));
  EXPECT_THAT(start.stack().to_vector<float>(), ElementsAre(1, 0));
  EXPECT_THAT(f(end, Tensor(7.f)).stack().to_vector<float>(), ElementsAre(1, 8));
  EXPECT_EQ(f.num_traces(), 1);
}

// x_0 = x, x_{i+1} = x_i^2 + c, all of them.
TensorArray iterate(const Tensor& x, const Tensor& c, const Tensor& n) {
  const auto [i, last, all] =
      while_loop([&](const Tensor& i, const Tensor&, const TensorArray&) { return i < n; },
                 [&](const Tensor& i, const Tensor& now, const TensorArray& all) {
                   return std::tuple{i + 1, now * now + c, all.write(i, now)};
                 },
                 std::tuple{Tensor(0), x, TensorArray(x.dtype(), n, {.element_shape = PartialShape{}})});
  return all;
}

TEST(TensorArrayInFunctions, AsALoopVariable) {
  auto f = function([](const Tensor& x, const Tensor& n) { return iterate(x, Tensor(1.f), n).stack(); });
  EXPECT_THAT(f(Tensor(1.f), Tensor(4)).to_vector<float>(), ElementsAre(1, 2, 5, 26));
  EXPECT_THAT(f(Tensor(2.f), Tensor(2)).to_vector<float>(), ElementsAre(2, 5));
  EXPECT_EQ(f.num_traces(), 1);
}

TEST(TensorArrayInFunctions, DerivativesAreThoseOfEagerCode) {
  auto loss = [](const Tensor& x, const Tensor& c) {
    const TensorArray all = iterate(x, c, Tensor(4));
    return reduce_sum(all.stack()) * all.read(2) + reduce_sum(all.gather({1, 1, 3}));
  };
  auto both = [&](const auto& f) {
    const Tensor x = constant(0.7, float64);
    const Tensor c = constant(-0.3, float64);
    GradientTape tape;
    tape.watch(x);
    tape.watch(c);
    std::vector<double> out;
    for (const Gradient& g : tape.gradient(f(x, c), {x, c})) out.push_back(g.value().template item<double>());
    return out;
  };
  const std::vector<double> eager = both(loss);
  const std::vector<double> traced = both(function(loss));
  EXPECT_NEAR(traced[0], eager[0], 1e-12);
  EXPECT_NEAR(traced[1], eager[1], 1e-12);
  const double h = 1e-6;
  const auto at = [&](double x) { return loss(constant(x, float64), constant(-0.3, float64)).item<double>(); };
  EXPECT_NEAR(eager[0], (at(0.7 + h) - at(0.7 - h)) / (2 * h), 1e-6);
}

TEST(TensorArrayInFunctions, ALoopOfWritesNeverCopies) {
  auto f = function([](const Tensor& n) {
    const auto [i, all] = while_loop([&](const Tensor& i, const TensorArray&) { return i < n; },
                                     [](const Tensor& i, const TensorArray& all) {
                                       return std::tuple{i + 1, all.write(i, cast(i, float32))};
                                     },
                                     std::tuple{Tensor(0), TensorArray(float32, n)});
    return all.read(n - 1);
  });
  const int64_t before = TensorList::num_copies();
  EXPECT_EQ(f(Tensor(3000)).item<float>(), 2999);
  EXPECT_EQ(TensorList::num_copies(), before);
}

TEST(TensorArrayInFunctions, AnIndexOutOfRangeNamesIndexAndSize) {
  auto f = function([](const Tensor& i) { return TensorArray(float32, 3, {.element_shape = PartialShape{}}).read(i); });
  EXPECT_EQ(f(Tensor(2)).item<float>(), 0);
  test::expect_error([&] { f(Tensor(3)); }, Code::invalid_argument, "index 3 is out of range: the list has 3 items");
}

}  // namespace
}  // namespace runnel
