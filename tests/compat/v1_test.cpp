// Graph first, session afterwards.
#include "runnel/compat/v1.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <thread>

#include "runnel/compat/v1_train.h"
#include "runnel/graph/graph_def.h"
#include "runnel/graph/graph_function.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::compat::v1 {
namespace {

using test::expect_error;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(V1, TheHandbooksSum) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor a = placeholder(int32);
  const Tensor b = placeholder(int32);
  const Tensor c = a + b;
  EXPECT_TRUE(c.is_symbolic());
  Session session(graph);
  EXPECT_EQ(session.run(c, {{a, 2}, {b, 3}}).item<int32_t>(), 5);
  EXPECT_THAT(session.run(c, {{a, Tensor{1, 2}}, {b, 10}}).to_vector<int32_t>(), ElementsAre(11, 12));
}

TEST(V1, AVariableWithoutAValueIsNamedWithAdvice) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable weight = get_variable("dense/weight", {2});
  const Tensor twice = weight * 2.f;
  const Tensor more = assign_add(weight, Tensor{1.f, 1.f});
  const Operation init = global_variables_initializer();
  Session session(graph);
  const char* const advice =
      "Variable 'dense/weight' has no value yet: run global_variables_initializer() in this session first";
  expect_error([&] { session.run(twice); }, Code::failed_precondition, advice);
  expect_error([&] { session.run(weight); }, Code::failed_precondition, advice);
  expect_error([&] { session.run(more); }, Code::failed_precondition, advice);
  session.run(init);
  EXPECT_EQ(session.run(twice).shape(), (Shape{2}));
  Session other(graph);  // has values of its own
  expect_error([&] { other.run(twice); }, Code::failed_precondition, advice);
}

TEST(V1, TheHandbooksVariable) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable a = get_variable("a", {});
  const Tensor initializer = assign(a, 0.0);
  const Tensor plus_one = assign(a, a + 1.0);
  Session session(graph);
  session.run(initializer);
  std::vector<float> seen;
  for (int i = 0; i < 5; ++i) {
    session.run(plus_one);
    seen.push_back(session.run(a).item<float>());
  }
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 5));
}

TEST(V1, OnlyWhatIsNeededRuns) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable counter = get_variable("counter", {}, {.initializer = zeros_initializer()});
  const Tensor counted = assign_add(counter, 1.0);
  const Tensor x = placeholder(float32, {}, "x");
  const Tensor y = x * 2;
  const Tensor unfed = placeholder(float32, {2}, "unfed") + y;
  Session session(graph);
  session.run(global_variables_initializer());
  EXPECT_EQ(session.run(y, {{x, 4}}).item<float>(), 8) << "4 is cast to float";
  EXPECT_EQ(session.run(counter).item<float>(), 0);
  session.run({y, counted}, {{x, 1.f}});
  EXPECT_EQ(session.run(counter).item<float>(), 1);
  EXPECT_EQ(session.run(y + 1, {{y, 5.f}}).item<float>(), 6) << "any tensor can be fed";
  expect_error(
      [&] {
        session.run(unfed, {{x, 1.f}});
      },
      Code::invalid_argument, "the placeholder 'unfed' (float32[2]) must be fed");
  expect_error(
      [&] {
        session.run(unfed, {{x, Tensor{1.f, 2.f}}});
      },
      Code::invalid_argument, "a value of shape [2] cannot be fed for 'x' of shape []");
}

TEST(V1, PlaceholdersMayHaveUnknownDimensions) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = placeholder(float32, {-1, 3});
  const Tensor y = reduce_sum(x, 1);
  EXPECT_EQ(y.partial_shape(), PartialShape{kUnknownDim});
  Session session(graph);
  EXPECT_THAT(session.run(y, {{x, Tensor{{1.f, 2.f, 3.f}}}}).to_vector<float>(), ElementsAre(6));
  EXPECT_THAT(session.run(y, {{x, Tensor{{1.f, 2.f, 3.f}, {0.f, 0.f, 1.f}}}}).to_vector<float>(), ElementsAre(6, 1));
}

TEST(V1, EverySessionHasItsOwnVariables) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable v = get_variable("v", {2}, {.initializer = constant_initializer(3)});
  const Tensor doubled = assign(v, v * 2.0);
  const Operation init = global_variables_initializer();
  Session one(graph);
  Session two(graph);
  one.run(init);
  expect_error([&] { two.run(v); }, Code::failed_precondition, "Variable 'v' has no value yet");
  two.run(init);
  one.run(doubled);
  EXPECT_THAT(one.run(v).to_vector<float>(), ElementsAre(6, 6));
  EXPECT_THAT(two.run(v).to_vector<float>(), ElementsAre(3, 3));
  one.close();
  expect_error([&] { one.run(v); }, Code::failed_precondition, "the session is closed");
}

TEST(V1, ControlDependenciesOrderEffects) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable v = get_variable("v", {}, {.initializer = constant_initializer(1)});
  const Tensor set = assign(v, 10.0);
  Tensor read;
  {
    const auto after = control_dependencies({set});
    read = v.value() + 0.5;
  }
  Session session(graph);
  session.run(global_variables_initializer());
  EXPECT_EQ(session.run(read).item<float>(), 10.5f);
  const Operation both = group({assign_add(v, 1.0), no_op()});
  session.run(both);
  EXPECT_EQ(session.run(v).item<float>(), 11);
  EXPECT_FALSE(session.run(both).defined());
}

TEST(V1, NamesAndCollections) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = placeholder(float32, {}, "x");
  const Tensor x2 = placeholder(float32, {}, "x");
  EXPECT_EQ(operation_of(x).name(), "x");
  EXPECT_EQ(operation_of(x2).name(), "x_1");
  EXPECT_EQ(operation_of(x).type(), "Placeholder");
  get_variable("w", {2});
  get_variable("steps", {}, {.dtype = int32, .trainable = false});
  EXPECT_EQ(global_variables().size(), 2u);
  EXPECT_EQ(trainable_variables().size(), 1u);
  EXPECT_THAT(graph.operations(), Contains("w/Assign"));
  expect_error([] { get_variable("w", {2}); }, Code::already_exists, "has a variable 'w' already");
}

TEST(V1, VariableScopesNameAndReuse) {
  Graph graph;
  const auto scope = graph.as_default();
  const auto dense = [](const Tensor& inputs) {
    const Variable weight = get_variable("weight", {inputs.shape()[1], 10});
    const Variable bias = get_variable("bias", {10}, {.initializer = zeros_initializer()});
    return nn::relu(matmul(inputs, weight) + bias);
  };
  Tensor x = placeholder(float32, {4, 32});
  {
    const auto dense1 = variable_scope("dense1");
    x = dense(x);
  }
  {
    const auto dense2 = variable_scope("dense2");
    x = dense(x);
  }
  {
    const auto dense2 = variable_scope("dense2", {.reuse = true});
    x = dense(x);
    expect_error(
        [] {
          get_variable("weight", {10, 11});
        },
        Code::invalid_argument, "'dense2/weight' is float32[10,10] and cannot be reused as float32[10,11]");
    expect_error([] { get_variable("other", {}); }, Code::not_found, "there is no variable 'dense2/other' to reuse");
    const auto inner = variable_scope("inner");
    expect_error([] { get_variable("w", {}); }, Code::not_found, "'dense2/inner/w'");
  }
  std::vector<std::string> shown;
  for (const Variable& v : global_variables()) shown.push_back((std::ostringstream() << v).str());
  EXPECT_THAT(shown, ElementsAre("<tf.Variable 'dense1/weight:0' shape=(32, 10) dtype=float32>",
                                 "<tf.Variable 'dense1/bias:0' shape=(10,) dtype=float32>",
                                 "<tf.Variable 'dense2/weight:0' shape=(10, 10) dtype=float32>",
                                 "<tf.Variable 'dense2/bias:0' shape=(10,) dtype=float32>"));
  const auto dense1 = variable_scope("dense1");
  expect_error([] { get_variable("bias", {10}); }, Code::already_exists, "has a variable 'dense1/bias' already");
}

// Written for a program that runs from top to bottom, as a metric's update_state is.
TEST(V1, UpdatesRunInTheOrderOfTheCalls) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable v = get_variable("v", {}, {.initializer = zeros_initializer()});
  const Variable seen = get_variable("seen", {}, {.initializer = zeros_initializer()});
  const Tensor before = assign(v, 1000.0);
  const Operation step = updates([&] {
    v.assign_add(1.0);
    v.assign(v * 2.0);
    seen.assign(v + 0.5);
    v.assign_add(10.0);
  });
  Session session(graph);
  session.run(global_variables_initializer());
  session.run(step);
  EXPECT_EQ(session.run(v).item<float>(), 12) << "and what was assigned before the updates is not run";
  EXPECT_EQ(session.run(seen).item<float>(), 2.5f);
  session.run(before);
  session.run(step);
  EXPECT_EQ(session.run(v).item<float>(), 2012);
  expect_error([&] { updates([] { throw Error(Code::invalid_argument, "stopped"); }); }, Code::invalid_argument,
               "stopped");
  const Tensor later = assign(v, v * 0.0);
  EXPECT_EQ(session.run(later).item<float>(), 0);
}

TEST(V1, ARunOfSeveralGivesThemByName) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable x = get_variable("x", {}, {.initializer = constant_initializer(3)});
  const Tensor y = square(x);
  const std::vector<Gradient> y_grad = gradients(y, {x});
  Session session(graph);
  session.run(global_variables_initializer());
  const auto [y_value, done, slope, x_value] = session.run({y, no_op(), y_grad[0], x});
  EXPECT_EQ(y_value.item<float>(), 9);
  EXPECT_FALSE(done.defined());
  EXPECT_EQ(slope.item<float>(), 6);
  EXPECT_EQ(x_value.item<float>(), 3);
  EXPECT_EQ(session.run({y})[0].item<float>(), 9);
  EXPECT_EQ(session.run(std::vector<Fetch>{y, x}).size(), 2u);
  EXPECT_EQ(session.run(y_grad[0]).item<float>(), 6);
}

TEST(V1, EagerOutsideOfScopes) {
  EXPECT_TRUE(executing_eagerly());
  expect_error([] { placeholder(float32); }, Code::failed_precondition, "ops run eagerly here");
  {
    Graph graph;
    const auto scope = graph.as_default();
    EXPECT_FALSE(executing_eagerly());
    EXPECT_TRUE((constant(1.f) + 1.f).is_symbolic());
  }
  EXPECT_EQ((Tensor(1.f) + 1.f).item<float>(), 2);
}

TEST(V1, ScopesNest) {
  Graph a;
  Graph b;
  const auto outer = a.as_default();
  {
    const auto other = b.as_default();
    {
      const auto again = a.as_default();
      placeholder(float32, {}, "in_a");
    }
    placeholder(float32, {}, "in_b");
  }
  placeholder(float32, {}, "also_in_a");
  EXPECT_THAT(a.operations(), ElementsAre("in_a", "also_in_a"));
  EXPECT_THAT(b.operations(), ElementsAre("in_b"));
  const Tensor x = placeholder(float32);
  const auto other = b.as_default();
  expect_error([&] { x + 1.f; }, Code::failed_precondition, "escaped");
}

TEST(V1, GraphModeForGood) {
  std::thread([] {  // a thread of its own: there is no way back
    disable_eager_execution();
    const Tensor x = placeholder(float32);
    EXPECT_EQ(Session().run(x * 2, {{x, 3}}).item<float>(), 6);
    const Graph before = get_default_graph();
    reset_default_graph();
    placeholder(float32, {}, "fresh");
    EXPECT_THAT(get_default_graph().operations(), ElementsAre("fresh"));
    EXPECT_THAT(before.operations(), Not(Contains("fresh")));
  })
      .join();
}

TEST(V1, ValuesFromOutsideGoIn) {
  const Tensor weights{1.f, 2.f};
  const Variable eager(5.f);
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor y = weights * eager;
  Session session(graph);
  EXPECT_THAT(session.run(y).to_vector<float>(), ElementsAre(5, 10));
}

// One variable, loss (w - 3)^2: what each rule makes of it, worked out here step by step.
std::vector<double> minimized(train::Optimizer& optimizer, int steps) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable w = get_variable("w", {}, {.dtype = float64, .initializer = constant_initializer(0)});
  const Variable step =
      get_variable("step", {}, {.dtype = int64, .initializer = zeros_initializer(), .trainable = false});
  const Tensor loss = square(w - 3.0);
  const Operation train = optimizer.minimize(loss, {.global_step = step});
  Session session(graph);
  session.run(global_variables_initializer());
  std::vector<double> seen;
  for (int i = 0; i < steps; ++i) {
    session.run(train);
    seen.push_back(session.run(w).item<double>());
  }
  EXPECT_EQ(session.run(step).item<int64_t>(), steps);
  return seen;
}

void expect_near(const std::vector<double>& actual, const std::function<double(double w, double g)>& rule) {
  double w = 0;
  for (double a : actual) {
    w = rule(w, 2 * (w - 3));
    EXPECT_NEAR(a, w, 1e-6);
  }
}

TEST(V1Train, GradientDescent) {
  train::GradientDescentOptimizer optimizer(0.1);
  expect_near(minimized(optimizer, 5), [](double w, double g) { return w - 0.1f * g; });
}
TEST(V1Train, Momentum) {
  train::MomentumOptimizer optimizer(0.1, 0.9);
  double a = 0;
  expect_near(minimized(optimizer, 5), [&](double w, double g) { return w - 0.1f * (a = 0.9 * a + g); });
}
TEST(V1Train, Adam) {
  train::AdamOptimizer optimizer(0.1);
  double m = 0, v = 0, b1 = 1, b2 = 1;
  expect_near(minimized(optimizer, 5), [&](double w, double g) {
    b1 *= 0.9;
    b2 *= 0.999;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    return w - 0.1f * std::sqrt(1 - b2) / (1 - b1) * m / (std::sqrt(v) + 1e-8);
  });
}
TEST(V1Train, RMSProp) {
  train::RMSPropOptimizer optimizer(0.1);
  double s = 1;
  expect_near(minimized(optimizer, 5), [&](double w, double g) {
    s = 0.9 * s + 0.1 * g * g;
    return w - 0.1f * g / std::sqrt(s + 1e-10);
  });
}
TEST(V1Train, Adagrad) {
  train::AdagradOptimizer optimizer(0.5);
  double s = 0.1;
  expect_near(minimized(optimizer, 5), [&](double w, double g) { return w - 0.5 * g / std::sqrt(s += g * g); });
}

TEST(V1Train, RowsOfAnEmbedding) {
  Graph graph;
  const auto scope = graph.as_default();
  const Variable table = get_variable("table", {4, 2}, {.initializer = zeros_initializer()});
  const Tensor ids = placeholder(int32, {-1});
  const Tensor loss = reduce_sum(square(gather(table.value(), ids) - 1.0));
  const Operation train = train::MomentumOptimizer(0.25, 0.9).minimize(loss);
  Session session(graph);
  session.run(global_variables_initializer());
  session.run(train, {{ids, Tensor{1, 3, 3}}});
  EXPECT_THAT(session.run(table).to_vector<float>(), ElementsAre(0, 0, 0.5, 0.5, 0, 0, 1, 1));
}

// Bars that lie or stand, told apart by a convolutional network.
TEST(V1Train, AConvolutionalNetworkLearns) {
  random::set_seed(1);
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor images = placeholder(float32, {-1, 8, 8, 1});
  const Tensor labels = placeholder(int32, {-1});
  const Variable kernel = get_variable("kernel", {3, 3, 1, 4});
  const Variable bias = get_variable("bias", {4}, {.initializer = zeros_initializer()});
  const Variable weights = get_variable("weights", {64, 2});
  Tensor x = nn::relu(nn::bias_add(nn::conv2d(images, kernel, {.padding = "SAME"}), bias));
  x = nn::max_pool2d(x, {.padding = "SAME"});
  const Tensor logits = matmul(reshape(x, {-1, 64}), weights);
  const Tensor loss = reduce_mean(nn::sparse_softmax_cross_entropy_with_logits(labels, logits));
  const Operation step = train::AdamOptimizer(0.02).minimize(loss);
  std::vector<float> pixels(16 * 64, 0);
  std::vector<int32_t> kinds;
  for (size_t i = 0; i < 16; ++i) {
    kinds.push_back(static_cast<int32_t>(i % 2));
    for (size_t k = 0; k < 8; ++k) pixels[i * 64 + (i % 2 == 0 ? i / 2 * 8 + k : k * 8 + i / 2)] = 1;
  }
  const Session::FeedDict feed{{images, Tensor::of<float>(pixels, {16, 8, 8, 1})},
                               {labels, Tensor::of<int32_t>(kinds)}};
  Session session(graph);
  session.run(global_variables_initializer());
  const float before = session.run(loss, feed).item<float>();
  for (int i = 0; i < 60; ++i) session.run(step, feed);
  EXPECT_LT(session.run(loss, feed).item<float>(), before / 10);
}

TEST(V1Train, NeedsAVariableThatMatters) {
  Graph graph;
  const auto scope = graph.as_default();
  get_variable("w", {});
  expect_error([] { train::GradientDescentOptimizer(0.1).minimize(constant(1.f) * 2.f); }, Code::invalid_argument,
               "depends on none of the variables");
}

TEST(V1, WhatIsFedCountsAlsoWhereTheGraphKnewAnotherValue) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = placeholder(float32, {-1, 3});
  const Tensor sizes = shape(x);
  const Tensor width = sizes[1];
  const Tensor three = identity(Tensor(3));
  const Tensor seven = three + 4;
  Session session(graph);
  EXPECT_EQ(session.run(width, {{sizes, Tensor{5, 7}}}).item<int32_t>(), 7);
  EXPECT_EQ(session.run(seven, {{three, Tensor(10)}}).item<int32_t>(), 14);
  EXPECT_EQ(session.run(seven).item<int32_t>(), 7);
}

TEST(V1, AGraphExports) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = placeholder(float32, {-1}, "x");
  const Tensor y = x * 2 + 1;
  const auto back = from_graph_def(graph.to_graph_def(), {.inputs = {"x"}, .outputs = {operation_of(y).name()}});
  EXPECT_THAT(GraphFunction(back).run({Tensor{3.f}})[0].to_vector<float>(), ElementsAre(7));
}

// The weights of a Keras model that is called in a graph belong to it.
TEST(V1, AKerasModelInAGraphIsTrained) {
  Graph graph;
  const auto scope = graph.as_default();
  keras::Sequential model({keras::Dense({.units = 4, .activation = "relu"}), keras::Dense({.units = 1})});
  const Tensor x = placeholder(float32, {kUnknownDim, 2});
  const Tensor y = placeholder(float32, {kUnknownDim, 1});
  const Tensor loss = reduce_mean(square(model(x) - y));
  EXPECT_EQ(global_variables().size(), 4u);
  EXPECT_EQ(trainable_variables().size(), 4u);
  EXPECT_EQ(graph.trainable_variables().size(), 4u);
  const Operation step = train::AdamOptimizer(0.05).minimize(loss);
  EXPECT_EQ(global_variables().size(), 4u + 2 * 4 + 2) << "the slots of the optimizer";
  Session session(graph);
  session.run(global_variables_initializer());
  const Session::FeedDict batch{{x, Tensor{{0.f, 1.f}, {1.f, 0.f}, {1.f, 1.f}}}, {y, Tensor{{1.f}, {2.f}, {3.f}}}};
  const float before = session.run(loss, batch).item<float>();
  for (int i = 0; i < 100; ++i) session.run(step, batch);
  EXPECT_LT(session.run(loss, batch).item<float>(), before / 4);
  EXPECT_EQ(session.run(model.trainable_variables()[0]).shape(), (Shape{2, 4}));
  session.run(global_variables_initializer());
  EXPECT_EQ(session.run(loss, batch).item<float>(), before) << "the weights start where they started";
}

// As the handbook tests a model in a session: predict and a metric see the session's weights.
TEST(V1, AKerasModelIsMeasuredInASession) {
  Graph graph;
  const auto scope = graph.as_default();
  keras::Sequential model({keras::Dense({.units = 2, .kernel_initializer = "zeros"})});
  const Tensor x = placeholder(float32, {kUnknownDim, 1});
  const Tensor logits = model(x);
  keras::metrics::SparseCategoricalAccuracy accuracy;
  const Tensor trained = assign(model.trainable_variables()[0], Tensor{{-1.f, 1.f}});
  Session session(graph);
  session.run(global_variables_initializer());
  session.run(trained);
  const Tensor test_data{{-1.f}, {2.f}, {3.f}, {-4.f}};
  const Tensor test_label{0, 1, 0, 0};
  for (int64_t start = 0; start < 4; start += 2) {
    const Tensor y_pred = model.predict(test_data.rows(start, start + 2), {.verbose = 0});
    session.run(updates([&] { accuracy.update_state(test_label.rows(start, start + 2), y_pred); }));
  }
  EXPECT_EQ(session.run(accuracy.result()).item<float>(), 0.75f);
  EXPECT_THAT(session.run(logits, {{x, Tensor{{2.f}}}}).to_vector<float>(), ElementsAre(-2, 2));
}

TEST(V1, VariablesOfABranchBelongToTheGraph) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor p = placeholder(DType::bool_, {});
  const auto make = [] { return get_variable("w", {2}, {.initializer = ones_initializer()}).value(); };
  const Tensor r = cond(p, make, [] { return zeros({2}); });
  EXPECT_EQ(graph.global_variables().size(), 1u);
  Session session(graph);
  session.run(global_variables_initializer());
  EXPECT_THAT(session.run(r, {{p, Tensor(true)}}).to_vector<float>(), ElementsAre(1, 1));
  EXPECT_THAT(session.run(r, {{p, Tensor(false)}}).to_vector<float>(), ElementsAre(0, 0));
}

TEST(V1, OperationsOfTheGraphAreRefusedInABranch) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor p = placeholder(DType::bool_, {});
  const auto otherwise = [] { return zeros({}); };
  const auto in_branch = [&](const std::function<void()>& build) {
    expect_error(
        [&] {
          cond(
              p,
              [&] {
                build();
                return ones({});
              },
              otherwise);
        },
        Code::failed_precondition, "has a graph of its own");
  };
  in_branch([] { no_op("mine"); });
  in_branch([&] { const auto after = control_dependencies({p}); });
  in_branch([] { placeholder(float32, {}); });
}

TEST(V1, EagerExecutionIsDisabledOutsideOfScopes) {
  {
    Graph graph;
    const auto scope = graph.as_default();
    expect_error([] { disable_eager_execution(); }, Code::failed_precondition, "as_default()");
  }
  EXPECT_TRUE(executing_eagerly());
}

TEST(V1, AGraphThatWasMovedFromSaysSo) {
  Graph graph;
  const Graph other = std::move(graph);
  const auto refused = [](const auto& use) {
    expect_error(use, Code::failed_precondition, "this Graph was moved from");
  };
  refused([&] { const auto scope = graph.as_default(); });  // NOLINT(bugprone-use-after-move): the point
  refused([&] { graph.operations(); });
  refused([&] { graph.global_variables(); });
  refused([&] { graph.trainable_variables(); });
  refused([&] { graph.to_graph_def(); });
  refused([&] { graph.to_text(); });
  refused([&] { const Session session(graph); });
  EXPECT_TRUE(other.operations().empty());
}

}  // namespace
}  // namespace runnel::compat::v1
