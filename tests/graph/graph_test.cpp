// Graphs: what a tracer builds, how it is checked, printed and run.
#include "runnel/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<GraphFunction> traced(int parameters, const PartialShape& shape,
                                      const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f) {
  Tracer tracer("test");
  std::vector<Tensor> in;
  for (int i = 0; i < parameters; ++i) in.push_back(tracer.add_parameter(DType::float32, shape));
  tracer.open();
  const std::vector<Tensor> out = f(in);
  tracer.set_outputs(out);
  tracer.close();
  auto function = std::make_shared<GraphFunction>(tracer.graph());
  function->captures = tracer.captures();
  function->graph().verify();
  return function;
}

TEST(Graph, OpsBecomeNodesAndRun) {
  auto f = traced(2, {3}, [](const auto& x) { return std::vector<Tensor>{x[0] * x[1] + 1, reduce_sum(x[0])}; });
  const auto out = f->run({Tensor{1.f, 2.f, 3.f}, Tensor{4.f, 5.f, 6.f}});
  EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{5, 11, 19}));
  EXPECT_EQ(out[1].item<float>(), 6);
}

TEST(Graph, ShapesAreInferred) {
  auto f = traced(1, {kUnknownDim, 4}, [](const auto& x) {
    EXPECT_EQ(x[0].partial_shape(), (PartialShape{kUnknownDim, 4}));
    EXPECT_THROW(x[0].shape(), Error);
    EXPECT_THROW(static_cast<void>(x[0].template host<float>()), Error);
    return std::vector<Tensor>{matmul(x[0], Tensor::of<float>({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2}))};
  });
  EXPECT_EQ(f->graph().outputs()[0].node->shape(), (PartialShape{kUnknownDim, 2}));
  EXPECT_EQ(f->run({Tensor{{1.f, 0.f, 0.f, 0.f}}})[0].to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(f->run({Tensor{{1.f, 0.f, 0.f, 0.f}, {0.f, 1.f, 0.f, 0.f}}})[0].shape(), (Shape{2, 2}));
}

TEST(Graph, ShapeArithmeticIsKnownWhileTracing) {
  auto f = traced(1, {6, 4}, [](const auto& x) {
    const Tensor n = shape(x[0]);
    return std::vector<Tensor>{reshape(x[0], ShapeArg(stack({n[0] - 3, n[1] * 2})))};
  });
  EXPECT_EQ(f->graph().outputs()[0].node->shape(), (PartialShape{3, 8}));
}

TEST(Graph, OldValuesAreCapturedNewOnesConstant) {
  const Tensor old{1.f, 2.f, 3.f};
  auto f = traced(1, {3}, [&](const auto& x) {
    return std::vector<Tensor>{x[0] + old + Tensor{10.f, 10.f, 10.f} + old};
  });
  ASSERT_EQ(f->captures.size(), 1U);
  EXPECT_EQ(f->captures[0].impl(), old.impl());
  EXPECT_EQ(f->run({Tensor{0.f, 0.f, 0.f}})[0].to_vector<float>(), (std::vector<float>{12, 14, 16}));
}

TEST(Graph, EffectsKeepTheirOrder) {
  const Variable v(1.f);
  const Variable w(1.f);
  auto f = traced(1, {}, [&](const auto& x) {
    v.assign(x[0]);
    const Tensor a = v.value();
    w.assign(a);
    v.assign(x[0] * 2);
    return std::vector<Tensor>{a, v.value()};
  });
  const Graph& g = f->graph();
  std::vector<const Node*> touching;
  for (const auto& n : g.nodes()) {
    if (n->op->stateful) touching.push_back(n.get());
  }
  ASSERT_EQ(touching.size(), 5U);
  EXPECT_THAT(touching[1]->control_inputs, testing::ElementsAre(touching[0]));  // the read, after the write
  EXPECT_THAT(touching[2]->control_inputs, testing::IsEmpty());                 // another variable
  EXPECT_THAT(touching[3]->control_inputs, testing::ElementsAre(touching[0], touching[1]));  // a write, after both
  const auto out = f->run({Tensor(3.f)});
  EXPECT_EQ(out[0].item<float>(), 3);
  EXPECT_EQ(out[1].item<float>(), 6);
  EXPECT_EQ(w.value().item<float>(), 3);
}

TEST(Graph, PruneKeepsEffectsOnly) {
  const Variable v(1.f);
  auto f = traced(1, {}, [&](const auto& x) {
    exp(x[0]);
    v.value();
    v.assign_add(x[0]);
    return std::vector<Tensor>{x[0] + 1};
  });
  EXPECT_TRUE(prune(*f->graph_ptr()));
  f->graph().verify();
  for (const auto& n : f->graph().nodes()) {
    EXPECT_FALSE(n->is("Exp"));
    EXPECT_FALSE(n->is("ReadVariableOp"));
  }
  f->run({Tensor(2.f)});
  EXPECT_EQ(v.value().item<float>(), 3);
}

TEST(Graph, TextAndDot) {
  auto f = traced(1, {2}, [](const auto& x) { return std::vector<Tensor>{nn::relu(x[0] * 2)}; });
  const std::string text = f->graph().to_text();
  EXPECT_THAT(text, HasSubstr("graph test(%unknown: float32[2]) {"));
  EXPECT_THAT(text, HasSubstr("%Mul: float32[2] = Mul(%unknown, %Const)"));
  EXPECT_THAT(text, HasSubstr("graph_test.cpp:"));
  EXPECT_THAT(text, HasSubstr("return %Relu"));
  EXPECT_THAT(f->graph().to_dot(), HasSubstr("digraph \"test\""));
}

TEST(Graph, VerifierSeesABrokenOrder) {
  auto f = traced(1, {2}, [](const auto& x) { return std::vector<Tensor>{exp(x[0]) + 1}; });
  Node* exp_node = nullptr;
  Node* add_node = nullptr;
  for (const auto& n : f->graph().nodes()) {
    if (n->is("Exp")) exp_node = n.get();
    if (n->is("AddV2")) add_node = n.get();
  }
  ASSERT_TRUE(exp_node && add_node);
  exp_node->inputs[0] = {add_node, 0};
  EXPECT_THROW(f->graph().verify(), Error);
  exp_node->inputs[0] = {exp_node, 3};
  EXPECT_THROW(f->graph().verify(), Error);
}

TEST(Graph, ErrorsNameNodeAndLine) {
  auto f = traced(1, PartialShape::unknown(), [](const auto& x) {
    return std::vector<Tensor>{matmul(x[0], Tensor{{1.f}, {2.f}})};
  });
  try {
    f->run({Tensor{{1.f, 2.f, 3.f}}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("[BatchMatMulV2]"));
    EXPECT_THAT(e.what(), HasSubstr("node 'BatchMatMulV2'"));
    EXPECT_THAT(e.what(), HasSubstr("graph_test.cpp:"));
  }
  EXPECT_EQ(f->run({Tensor{{1.f, 2.f}}})[0].item<float>(), 5);
}

TEST(Graph, ATensorOfAnotherGraphIsRefused) {
  Tensor escaped;
  traced(1, {2}, [&](const auto& x) {
    escaped = x[0] + 1;
    return std::vector<Tensor>{escaped};
  });
  EXPECT_THROW(traced(1, {2}, [&](const auto& x) { return std::vector<Tensor>{x[0] + escaped}; }), Error);
  EXPECT_THROW(static_cast<void>(escaped + 1), Error);
}

TEST(Graph, ThreadsRunItAtOnce) {
  auto f = traced(1, {100}, [](const auto& x) {
    Tensor y = x[0];
    for (int i = 0; i < 20; ++i) y = y * 0.5f + x[0];
    return std::vector<Tensor>{y};
  });
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = fill({100}, static_cast<float>(t));
      const std::vector<float> expected = f->run({x})[0].to_vector<float>();
      for (int i = 0; i < 200; ++i) wrong += f->run({x})[0].to_vector<float>() != expected;
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Graph, ResultsAreNotTouchedByLaterRuns) {
  auto f = traced(1, {4}, [](const auto& x) {
    const Tensor y = x[0] + 1;
    return std::vector<Tensor>{y, reshape(y, {2, 2}), y, x[0]};
  });
  const auto first = f->run({Tensor{0.f, 0.f, 0.f, 0.f}});
  f->run({Tensor{5.f, 5.f, 5.f, 5.f}});
  EXPECT_EQ(first[0].to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(first[1].to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(first[2].to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(first[3].to_vector<float>(), (std::vector<float>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace runnel
