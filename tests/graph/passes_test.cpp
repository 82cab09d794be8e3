// Passes: what each of them does, and that none changes a result.
#include "runnel/graph/passes/pass.h"

#include <gtest/gtest.h>

#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using Program = std::function<Tensor(const Tensor&)>;

std::shared_ptr<Graph> traced_plain(const Program& f, const PartialShape& shape) {
  Tracer tracer("test");
  const Tensor x = tracer.add_parameter(DType::float32, shape);
  tracer.open();
  const Tensor y = f(x);
  tracer.set_outputs({y});
  tracer.close();
  return tracer.graph();
}

int count(const Graph& g, const char* op) {
  int n = 0;
  for (const auto& node : g.nodes()) n += node->is(op);
  return n;
}

TEST(Passes, ConstantsAreFolded) {
  auto g = traced_plain([](const Tensor& x) { return x * exp(Tensor(1.f) + 2) + cast(size(x), DType::float32); }, {3});
  EXPECT_TRUE(fold_constants(*g));
  prune(*g);
  g->verify();
  EXPECT_EQ(count(*g, "Exp"), 0);
  EXPECT_EQ(count(*g, "Size"), 0);
  EXPECT_EQ(count(*g, "Mul"), 1);
}

TEST(Passes, CommonSubexpressionsAreMerged) {
  auto g = traced_plain([](const Tensor& x) { return exp(x * 2) + exp(x * 2) + exp(x * 3); }, {3});
  EXPECT_TRUE(merge_common_subexpressions(*g));
  g->verify();
  EXPECT_EQ(count(*g, "Exp"), 2);
  EXPECT_EQ(count(*g, "Mul"), 2);
  EXPECT_FALSE(merge_common_subexpressions(*g));
}

TEST(Passes, AnEmptyConstantIsNoZero) {
  auto f = function([](const Tensor& x) {
    const Tensor c = Tensor{1.f, 2.f};
    const Tensor none_of_it = boolean_mask(c, c > 3);
    return std::tuple{none_of_it * 1.f, reduce_sum(none_of_it) + x};
  });
  const auto [empty, sum] = f(Tensor(2.f));
  EXPECT_EQ(empty.shape(), Shape({0}));
  EXPECT_EQ(sum.shape(), Shape());
  EXPECT_EQ(sum.item<float>(), 2);
}

TEST(Passes, RandomDrawsAreNotMerged) {
  auto g = traced_plain([](const Tensor& x) { return x + random::normal({3}) + random::normal({3}); }, {3});
  merge_common_subexpressions(*g);
  EXPECT_EQ(count(*g, "RandomStandardNormal"), 2);
}

TEST(Passes, AlgebraKeepsEveryBit) {
  auto g = traced_plain([](const Tensor& x) { return reshape(identity(x * 1.f / 1.f - 0.f), {3}) + 0.f; }, {3});
  EXPECT_TRUE(simplify_algebra(*g));
  prune(*g);
  g->verify();
  EXPECT_EQ(count(*g, "Mul") + count(*g, "RealDiv") + count(*g, "Sub") + count(*g, "Reshape") + count(*g, "Identity"),
            0);
  EXPECT_EQ(count(*g, "AddV2"), 1);  // -0 + 0 is 0
}

TEST(Passes, ResultsStayWithEveryPassOffInTurn) {
  const Variable v(Tensor{1.f, -0.f, 3.f});
  const std::vector<Program> programs{
      [](const Tensor& x) { return exp(x * 1.f) + exp(x) * (Tensor(2.f) + 1) - 0.f; },
      [&](const Tensor& x) {
        v.assign(v * x);
        return v + identity(x) + v;
      },
      [](const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        return tape.gradient(reduce_sum(nn::softmax(x) * tanh(x) / 1.f), x).value();
      },
  };
  const Tensor x{0.5f, -0.f, 2.f};
  for (const Program& program : programs) {
    const Tensor start = v.value();
    const std::vector<float> expected = program(x).to_vector<float>();
    const std::vector<float> state = v.value().to_vector<float>();
    const auto check = [&](const char* without, const PlanOptions& plan) {
      v.assign(start);
      auto f = function(program, {.plan = plan});
      EXPECT_EQ(f(x).to_vector<float>(), expected) << "without " << without;
      EXPECT_EQ(v.value().to_vector<float>(), state) << "without " << without;
    };
    check("nothing", {});
    for (const Pass& p : all_passes()) {
      PlanOptions plan;
      plan.*p.enabled = false;
      check(p.name, plan);
    }
  }
}

}  // namespace
}  // namespace runnel
