// What cannot work and is refused before it crashes, goes on without end, or trains on nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_error;

Sequential compiled_dense() {
  Sequential model({Dense(3)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  return model;
}

TEST(Refusals, OfEmptyPointers) {
  Sequential model;
  const LayerPtr no_layer;
  expect_error([&] { model.add(no_layer); }, Code::invalid_argument, "is an empty pointer");
  const MetricPtr no_metric;
  expect_error([&] { model.compile({.loss = "mse", .metrics = {no_metric}}); }, Code::invalid_argument,
               "one of .metrics is an empty pointer");
  Sequential other = compiled_dense();
  const CallbackPtr no_callback;
  expect_error(
      [&] {
        other.predict(ones({4, 2}), {.verbose = 0, .callbacks = {no_callback}});
      },
      Code::invalid_argument, "one of .callbacks is an empty pointer");
}

TEST(Refusals, OfMetricsThatWereMovedFrom) {
  metrics::AUC auc;
  metrics::AUC taken = std::move(auc);
  const auto shared = std::make_shared<metrics::Mean>();
  const metrics::Mean mean = std::move(*shared);
  Sequential model({Dense(1, {.activation = "sigmoid"})});
  const std::string text = "this Metric was moved from";
  // NOLINTBEGIN(bugprone-use-after-move): that is what this is about
  expect_error([&] { model.compile({.loss = "mse", .metrics = {auc}}); }, Code::failed_precondition, text);
  expect_error([&] { model.compile({.loss = "mse", .metrics = {shared}}); }, Code::failed_precondition, text);
  expect_error([&] { auc.reset_state(); }, Code::failed_precondition, text);
  expect_error([&] { auc(ones({2}), ones({2})); }, Code::failed_precondition, text);
  // NOLINTEND(bugprone-use-after-move)
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {taken}});
  model.evaluate(ones({4, 2}), ones({4, 1}), {.verbose = 0});
}

struct RunsAgain : Callback {
  std::function<void()> run;
  void on_epoch_begin(int64_t, const Logs&) override { run(); }
  void on_test_begin(const Logs&) override { run(); }
  void on_predict_begin(const Logs&) override { run(); }
};

TEST(Refusals, OfPassesInsideThemselves) {
  const Tensor x = ones({4, 2}), y = ones({4, 3});
  Sequential model = compiled_dense();
  RunsAgain again;
  again.run = [&] { model.fit(x, y, {.verbose = 0, .callbacks = {again}}); };
  expect_error(again.run, Code::failed_precondition, "fit is called inside itself");
  again.run = [&] { model.evaluate(x, y, {.verbose = 0, .callbacks = {again}}); };
  expect_error(again.run, Code::failed_precondition, "evaluate is called inside itself");
  again.run = [&] { model.predict(x, {.verbose = 0, .callbacks = {again}}); };
  expect_error(again.run, Code::failed_precondition, "predict is called inside itself");
  // Others may run in a callback, and the same again afterwards.
  int passes = 0;
  Sequential other = compiled_dense();
  again.run = [&] {
    ++passes;
    model.evaluate(x, y, {.verbose = 0});
    model.predict(x, {.verbose = 0});
    other.fit(x, y, {.verbose = 0});
  };
  model.fit(x, y, {.epochs = 2, .verbose = 0, .callbacks = {again}});
  EXPECT_EQ(passes, 2);
}

struct LeadsBack : Model {
  Dense dense{this, "dense", 4};
  Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
};

TEST(Refusals, WalksOverModelsThatTrackEachOtherEnd) {
  const auto a = std::make_shared<LeadsBack>(), b = std::make_shared<LeadsBack>();
  (*a)(ones({1, 2}));
  (*b)(ones({1, 2}));
  a->track("b", b);
  b->track("a", a);
  EXPECT_EQ(a->weights().size(), 4u);
  EXPECT_EQ(a->trainable_weights().size(), 4u);
  EXPECT_EQ(a->non_trainable_weights().size(), 0u);
  EXPECT_EQ(b->weights().size(), 4u);
  EXPECT_EQ(a->constraint_of(b->weights()[0]), nullptr);
  a->set_trainable(false);
  EXPECT_EQ(a->trainable_weights().size(), 0u);
  EXPECT_EQ(a->non_trainable_weights().size(), 4u);
  a->untrack("b");  // else the two keep each other
  EXPECT_EQ(a->weights().size(), 2u);
}

TEST(Refusals, OfConfigurationsWithoutTheShapeOfAnInput) {
  expect_error(
      [] {
        model_from_json(
            R"({"class_name":"Sequential","config":{"name":"s","layers":[{"class_name":"InputLayer","config":)"
            R"({"name":"i","dtype":"float32","batch_shape":[null,4]}},{"class_name":"Dense","config":)"
            R"({"name":"d","units":3}}]}})");
      },
      Code::invalid_argument, "the InputLayer 'i' of model 's' has no batch_input_shape");
  expect_error(
      [] {
        model_from_json(
            R"({"class_name":"Functional","config":{"name":"f","layers":[{"class_name":"InputLayer","config":)"
            R"({"name":"i","dtype":"float32","batch_shape":[null,4]},"name":"i","inbound_nodes":[]}],)"
            R"("input_layers":[["i",0,0]],"output_layers":[["i",0,0]]}})");
      },
      Code::invalid_argument, "the InputLayer 'i' of the configuration has no \"batch_input_shape\"");
}

TEST(Refusals, OfWindowsThatDoNotFit) {
  const std::string text = "One of the dimensions in the output is <= 0 due to downsampling in layer";
  expect_error(
      [] {
        const Sequential model({Conv2D(4, 3, {.input_shape = {6, 6, 1}}), MaxPooling2D(2), Conv2D(4, 3), Flatten()});
      },
      Code::invalid_argument, text);
  expect_error(
      [] {
        MaxPooling2D pool(3);
        pool(ones({1, 2, 5, 1}));
      },
      Code::invalid_argument, text);
  expect_error(
      [] {
        AveragePooling1D pool(3);
        pool(ones({1, 2, 1}));
      },
      Code::invalid_argument, text);
  expect_error(
      [] {
        Conv1D conv(2, 3);
        conv(ones({1, 2, 1}));
      },
      Code::invalid_argument, text);
  Conv2D same(4, 3, {.padding = "same"});
  EXPECT_EQ(same(ones({1, 2, 2, 1})).shape(), (Shape{1, 2, 2, 4}));
}

TEST(Refusals, AModelThatACallbackLetsGoOfIsThereUntilFitEnds) {
  auto model = std::make_shared<Sequential>(Flatten(), Dense(3));
  model->compile({.optimizer = "sgd", .loss = "mse"});
  callbacks::LambdaCallback lets_go({.on_epoch_end = [&](int64_t, Logs&) { model.reset(); }});
  Sequential* raw = model.get();
  const History history = raw->fit(ones({4, 2}), ones({4, 3}), {.epochs = 3, .verbose = 0, .callbacks = {lets_go}});
  EXPECT_EQ(history["loss"].size(), 3u);
  EXPECT_EQ(model, nullptr);
}

TEST(Refusals, OfComplexInputsOfDense) {
  Dense dense(2);
  expect_error([&] { dense(complex(ones({1, 2}), ones({1, 2}))); }, Code::invalid_argument, "lose the imaginary part");
}

struct ReturnsNothing : Layer {
  Tensor call(const Tensor&, const CallArgs&) override { return Tensor(); }
};

TEST(Refusals, OfCallsWithoutAResult) {
  ReturnsNothing layer;
  expect_error([&] { layer(ones({2, 4})); }, Code::failed_precondition, "returned a tensor without a value");
}

TEST(Refusals, OfNegativeNumbers) {
  Sequential model = compiled_dense();
  expect_error(
      [&] {
        model.fit(ones({4, 2}), ones({4, 3}), {.epochs = -1, .verbose = 0});
      },
      Code::invalid_argument, "epochs and initial_epoch must not be negative, got -1 and 0");
  expect_error([] { Input({-3}); }, Code::invalid_argument, "the size of a dimension is -3");
  EXPECT_TRUE(model.fit(ones({4, 2}), ones({4, 3}), {.epochs = 0, .verbose = 0}).epoch.empty());
}

}  // namespace
}  // namespace runnel::keras
