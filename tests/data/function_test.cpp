#include "runnel/function/traced_blocks.h"
#include "runnel/graph/graph.h"
#include "tests/data/helpers.h"

namespace runnel::data {
namespace {

TEST(InFunctions, ForIsALoopOfTheGraph) {
  const auto d = from_tensor_slices(Tensor{1, 2, 3, 4}, Tensor{10, 20, 30, 40}).batch(2);
  int traced = 0;
  const auto total = function([&](Tensor sum) {
    ++traced;
    for (auto [x, y] : d) sum = sum + reduce_sum(x * y);
    return sum;
  });
  EXPECT_EQ(total(Tensor(0)).item<int32_t>(), 300);
  EXPECT_EQ(total(Tensor(5)).item<int32_t>(), 305) << "each run is a pass of its own";
  EXPECT_EQ(traced, 1);
  int64_t loops = 0;
  for (const auto& node : total.get_concrete_function(Tensor(0)).graph().nodes()) loops += !functions_of(*node).empty();
  EXPECT_EQ(loops, 1);
}

TEST(InFunctions, PassesShuffleAnew) {
  const auto d = range(20).shuffle(20, 3);
  const auto last = function([&](Tensor seen) {
    for (auto x : d) seen = seen * int64_t{31} + x;
    return seen;
  });
  EXPECT_NE(last(Tensor(int64_t{1})).item<int64_t>(), last(Tensor(int64_t{1})).item<int64_t>());
}

TEST(InFunctions, AnEmptyDatasetAndGradients) {
  const auto none = range(0);
  const auto same = function([&](Tensor x) {
    for (auto y : none) x = x + cast(y, float32);
    return x;
  });
  EXPECT_EQ(same(Tensor(2.f)).item<float>(), 2.f);
  Variable w(3.f);
  const auto d = from_tensor_slices(Tensor{1.f, 2.f, 4.f});
  const auto loss = function([&] {
    Tensor sum = zeros({});
    for (auto x : d) sum = sum + w * x;
    return sum;
  });
  GradientTape tape;
  const Tensor y = loss();
  EXPECT_EQ(y.item<float>(), 21.f);
  EXPECT_EQ(tape.gradient(y, w).dense().item<float>(), 7.f);
}

TEST(InFunctions, AnIteratorFromOutsideGoesOn) {
  auto it = range(3).map([](Tensor x) { return x * int64_t{10}; }).prefetch(2).make_iterator();
  const auto step = function([&] { return it.get_next() + int64_t{1}; });
  EXPECT_EQ(step().item<int64_t>(), 1);
  EXPECT_EQ(step().item<int64_t>(), 11);
  EXPECT_EQ(it.get_next().item<int64_t>(), 20) << "eagerly and in functions it is one sequence";
  expect_error([&] { step(); }, Code::out_of_range, "end of sequence");
  expect_error([&] { it.get_next(); }, Code::out_of_range, "end of sequence");
}

TEST(InFunctions, UnknownElementsAreAnError) {
  const auto d = stream(3);
  const auto f = function([&](Tensor sum) {
    for (auto x : d) sum = sum + x;
    return sum;
  });
  expect_error([&] { f(Tensor(int64_t{0})); }, Code::failed_precondition, "must know the dtypes");
}

TEST(InFunctions, PipelinesMadeInsideRunOutside) {
  // A dataset whose callables run while a trace is open elsewhere on the thread: their ops do not leak into it.
  const auto d = range(4).map([](Tensor x) { return x + int64_t{1}; });
  const auto f = function([&](Tensor x) {
    auto it = d.make_iterator();
    return x + *it.next();
  });
  EXPECT_EQ(f(Tensor(int64_t{5})).item<int64_t>(), 6);
  EXPECT_EQ(f(Tensor(int64_t{7})).item<int64_t>(), 8);
}

}  // namespace
}  // namespace runnel::data
