// Scopes of names that layers, losses and optimizers open: tags of summaries, nodes of graphs. What is expected is what
// Keras 2 with TensorFlow 2.15 gave for the same program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "runnel/function/traced_blocks.h"
#include "runnel/graph/graph.h"
#include "runnel/graph/name_scope.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/summary/summary.h"
#include "tests/summary/support.h"

namespace runnel::keras {
namespace {

using test::tags_of;
using test::TempDir;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

struct Leaf : Layer {
  using Layer::Layer;
  Tensor call(const Tensor& x, const CallArgs&) override {
    summary::scalar("leaf", 1.f);
    return x + 1.f;
  }
};

struct Scoped : Layer {
  Dense inner{this, "inner", {.units = 2, .name = "inner"}};
  using Layer::Layer;
  void build(const PartialShape&) override { summary::scalar("in_build", 1.f); }
  Tensor call(const Tensor& x, const CallArgs&) override {
    summary::scalar("in_call", 1.f);
    const Tensor y = inner(x);
    const auto scope = name_scope("sc");
    summary::scalar("scoped", 2.f);
    return y;
  }
};

struct Two : Layer {
  Leaf a{this, "a", {.name = "a"}};
  using Layer::Layer;
  Tensor call(const Tensor& x, const CallArgs&) override { return a(a(x)); }
};

template <class F>
std::vector<std::string> tags_written(const F& body) {
  TempDir dir;
  const summary::SummaryWriter writer = summary::create_file_writer(dir.path());
  {
    const auto scope = writer.as_default(7);
    body();
  }
  writer.close();
  return tags_of(dir.path());
}

std::vector<std::string> node_names(const Graph& graph, const std::string& op = "") {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) {
    if (op.empty() || node->is(op)) names.push_back(node->name);
  }
  return names;
}

ModelPtr functional_model() {
  const Tensor in = Input({3});
  const auto scoped = std::make_shared<Scoped>(LayerOptions{.name = "my"});
  const auto two = std::make_shared<Two>(LayerOptions{.name = "two"});
  return std::make_shared<Model>(in, (*two)((*scoped)(in)), LayerOptions{.name = "fm"});
}

TEST(LayerScopes, TagsOfEagerCalls) {
  const Tensor x = ones({2, 3});
  Scoped scoped({.name = "my"});
  EXPECT_THAT(tags_written([&] { scoped(x); }), ElementsAre("my/in_build@7", "my/in_call@7", "my/sc/scoped@7"));
  Two two({.name = "two"});
  EXPECT_THAT(tags_written([&] { two(x); }), ElementsAre("two/a/leaf@7", "two/a/leaf@7"));
  const ModelPtr model = functional_model();
  const auto inside =
      std::vector<std::string>{"fm/my/in_call@7", "fm/my/sc/scoped@7", "fm/two/a/leaf@7", "fm/two/a/leaf@7"};
  EXPECT_EQ(tags_written([&] { (*model)(x); }), inside);
  EXPECT_THAT(tags_written([&] {
                const auto outer = name_scope("out");
                (*model)(x);
              }),
              Contains("out/fm/my/sc/scoped@7"));
  EXPECT_EQ(current_name_scope(), "");
}

TEST(LayerScopes, TagsAndNodesOfFunctions) {
  const ModelPtr model = functional_model();
  const Tensor x = ones({2, 3});
  auto f = function([&](const Tensor& x) {
    const Tensor a = (*model)(x), b = (*model)(x);
    Tensor c;
    {
      const auto again = name_scope("fm");  // the scope of a layer takes no name away
      c = x + 1.f;
    }
    const auto z = name_scope("z");
    return a + b + (*model)(x)*reduce_sum(c);
  });
  EXPECT_THAT(tags_written([&] { f(x); }),
              ElementsAre("fm/my/in_call@7", "fm/my/sc/scoped@7", "fm/two/a/leaf@7", "fm/two/a/leaf@7",
                          "fm/my/in_call@7", "fm/my/sc_1/scoped@7", "fm/two/a/leaf@7", "fm/two/a/leaf@7",
                          "z/fm/my/in_call@7", "z/fm/my/sc/scoped@7", "z/fm/two/a/leaf@7", "z/fm/two/a/leaf@7"));
  const Graph& graph = f.get_concrete_function(x).graph();
  EXPECT_THAT(node_names(graph, "MatMul"),
              ElementsAre("fm/my/inner/MatMul", "fm/my/inner/MatMul_1", "z/fm/my/inner/MatMul"));
  EXPECT_THAT(node_names(graph, "BiasAdd"),
              ElementsAre("fm/my/inner/BiasAdd", "fm/my/inner/BiasAdd_1", "z/fm/my/inner/BiasAdd"));
  EXPECT_THAT(node_names(graph), Contains("fm/AddV2"));
}

TEST(LayerScopes, Branches) {
  Leaf leaf({.name = "q"});
  auto f = function([&](Tensor x) {
    IF(reduce_sum(x) > 0.f) { x = leaf(x); }
    return x;
  });
  EXPECT_THAT(tags_written([&] { f(ones({2})); }), ElementsAre("cond/q/leaf@7"));
}

TEST(LayerScopes, RegularizersLossesAndOptimizers) {
  Sequential model({layers::Dense({.units = 2,
                                   .kernel_regularizer = "l2",
                                   .activity_regularizer = "l2",
                                   .input_shape = PartialShape{3},
                                   .name = "dd"})},
                   {.name = "seq"});
  losses::MeanSquaredError loss;
  optimizers::SGD sgd(0.1);
  auto step = function([&](const Tensor& x) {
    GradientTape tape;
    Tensor total = loss(x(all, slice(0, 2)), model(x));
    for (const Tensor& each : model.losses()) total = total + each;
    sgd.minimize(total, model.trainable_variables(), tape);
    return total;
  });
  step(ones({2, 3}));
  const std::vector<std::string> names = node_names(step.get_concrete_function(ones({2, 3})).graph());
  const auto any_below = [&](const std::string& scope) {
    return std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(scope + "/"); });
  };
  for (const char* scope : {"seq/dd", "seq/dd/ActivityRegularizer", "dd/kernel/Regularizer", "mean_squared_error",
                            "mean_squared_error/weighted_loss", "SGD"}) {
    EXPECT_TRUE(any_below(scope)) << scope << ": " << testing::PrintToString(names);
  }
}

// A layer has its name before threads share it.
TEST(LayerScopes, ThreadsShareALayer) {
  Leaf leaf;
  leaf(ones({2}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) leaf(ones({2}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(leaf.name(), testing::StartsWith("leaf"));
}

}  // namespace
}  // namespace runnel::keras
