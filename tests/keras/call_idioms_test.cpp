// How models are made, trained and asked in few words, as in Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using testing::ElementsAre;

struct TwoInputs {
  Tensor a = random::stateless_normal({12, 3}, {1, 2}), b = random::stateless_normal({12, 3}, {3, 4});
  Tensor y = reduce_sum(a - b, 1, true);
};

// One output: the sums of both inputs.
Model sum_model() {
  const Tensor a = Input({3}, {.name = "a"}), b = Input({3}, {.name = "b"});
  return Model({a, b}, Dense(1)(Concatenate()({a, b})));
}

TEST(KerasCallIdioms, BracesAreAListOfInputs) {
  const TwoInputs d;
  Model model = sum_model();
  EXPECT_EQ(nest::flatten(model.inputs()).size(), 2u);
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const History history = model.fit({d.a, d.b}, d.y, {.epochs = 2, .verbose = 0, .validation_data = {{d.a, d.b}, d.y}});
  EXPECT_EQ(history["val_loss"].size(), 2u);
  const Tensor out = model.predict({d.a, d.b}, {.verbose = 0});
  const Tensor called = model({d.a, d.b});
  EXPECT_EQ(called.to_vector<float>(), out.to_vector<float>());
  EXPECT_EQ(out.to_vector<float>(),
            model.predict(std::vector<Tensor>{d.a, d.b}, {.verbose = 0}).leaf().to_vector<float>());
  const double loss = model.evaluate({d.a, d.b}, d.y, {.verbose = 0})["loss"];
  EXPECT_NEAR(loss, history["val_loss"].back(), 1e-6);
  EXPECT_NEAR(model.test_on_batch({d.a, d.b}, d.y)["loss"], loss, 1e-5);
  model.train_on_batch({d.a, d.b}, d.y);
  EXPECT_EQ(model.predict_on_batch({d.a, d.b}).leaf().shape(), (Shape{12, 1}));
  // A list of one is that one, as in Keras.
  EXPECT_TRUE(Model({model.inputs()[0].leaf()}, {model.inputs()[0].leaf()}).outputs().is_leaf());
}

TEST(KerasCallIdioms, BracesAreAListOfOutputs) {
  const TwoInputs d;
  const Tensor in = Input({3});
  Model model(in, {Dense(1, {.name = "one"})(in), Dense(2, {.name = "two"})(in)});
  model.compile({.loss = {"mse", losses::mae}, .loss_weights = {1, 0.5}});
  model.fit(d.a, {d.y, d.b(all, slice(0, 2))}, {.verbose = 0});
  EXPECT_EQ(model.predict(NestArg(d.a), {.verbose = 0})[1].leaf().shape(), (Shape{12, 2}));
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss", "one_loss", "two_loss"));
}

TEST(KerasCallIdioms, FormsOfValidationData) {
  const TwoInputs d;
  Sequential model({Dense(1)});
  model.compile({.loss = "mse"});
  const auto val_loss = [&](const ValidationData& validation) {
    return model.fit(d.a, d.y, {.epochs = 1, .verbose = 0, .validation_data = validation})["val_loss"].size();
  };
  EXPECT_EQ(val_loss({d.a, d.y}), 1u);
  EXPECT_EQ(val_loss({d.a, d.y, ones({12})}), 1u);
  EXPECT_EQ(val_loss({{d.a, d.y}}), 1u);
  EXPECT_EQ(val_loss(SampleData(d.a, d.y)), 1u);
  EXPECT_EQ(val_loss(data::from_tensor_slices(d.a, d.y).batch(4)), 1u);
  EXPECT_EQ(model.fit(d.a, d.y, {.verbose = 0, .validation_data = {}}).history.count("val_loss"), 0u);
  EXPECT_EQ(model.fit(d.a, d.y, {.verbose = 0, .validation_data = std::nullopt}).history.count("val_loss"), 0u);
}

TEST(KerasCallIdioms, ModelsAreAssigned) {
  const TwoInputs d;
  Sequential model({Dense(2)});
  model.compile({.loss = "mse"});
  model.predict(d.a, {.verbose = 0});
  Sequential other({Dense(4), Dense(1)});
  other.build_for_shape({-1, 3});
  const std::vector<float> expected = other(d.a).to_vector<float>();
  model = std::move(other);
  EXPECT_EQ(model.layers().size(), 2u);
  EXPECT_EQ(model.predict(d.a, {.verbose = 0}).to_vector<float>(), expected);
  EXPECT_EQ(model.trainable_variables().size(), 4u);
  EXPECT_FALSE(model.compiled());
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const double before = model.evaluate(d.a, d.y, {.verbose = 0})[0];
  model.fit(d.a, d.y, {.epochs = 20, .verbose = 0});
  EXPECT_LT(model.evaluate(d.a, d.y, {.verbose = 0})[0], before);
  Model functional;
  functional = sum_model();
  EXPECT_EQ(functional({d.a, d.b}).leaf().shape(), (Shape{12, 1}));
  functional = sum_model();
  EXPECT_EQ(functional.count_params(), 7);
}

struct Holder : Model {
  Sequential body{this, "body"};
  Sequential tail{this, "tail", {Dense(3)}};
  Dense head{this, "head", 1};
  Tensor call(const Tensor& x, const CallArgs&) override { return head(tail(body(x))); }
};

TEST(KerasCallIdioms, AnAssignedMemberStaysAMember) {
  const TwoInputs d;
  Holder holder;
  holder.body = Sequential({Dense(5, "relu")});
  holder.head = Dense(2);
  EXPECT_EQ(holder(d.a).shape(), (Shape{12, 2}));
  EXPECT_EQ(holder.trainable_variables().size(), 6u);
  expect_error([&] { holder = Holder(); }, Code::failed_precondition, "its part 'body' is a member");
}

TEST(KerasCallIdioms, SequentialOnTheHeap) {
  const TwoInputs d;
  const auto a = std::make_shared<Sequential>(Flatten(), Dense(3));
  EXPECT_EQ((*a)(d.a).shape(), (Shape{12, 3}));
  const auto b = make<Sequential>({Flatten(), Dense(3)}, {.name = "mine"});
  EXPECT_EQ(b(d.a).shape(), (Shape{12, 3}));
  EXPECT_EQ(b->name(), "mine");
  const auto c = std::make_shared<Sequential>(std::vector<LayerPtr>{std::make_shared<Dense>(2)});
  EXPECT_EQ((*c)(d.a).shape(), (Shape{12, 2}));
  const auto moved = std::make_shared<Sequential>(Sequential({Dense(2)}));
  EXPECT_EQ(moved->layers().size(), 1u);
}

TEST(KerasCallIdioms, OneMetricAndShortNames) {
  const TwoInputs d;
  Sequential model({Dense(1)});
  model.compile({.loss = losses::mse, .metrics = "mae"});
  const Logs r = model.evaluate(d.a, d.y, {.verbose = 0});
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss", "mae"));
  EXPECT_EQ(r[0], r["loss"]);
  EXPECT_EQ(r[1], r["mae"]);
  expect_error([&] { r[2]; }, Code::out_of_range, "the logs have 2 values, asked for number 2; there are: loss, mae");
  const Tensor out = model(d.a);
  EXPECT_EQ(losses::MSE(d.y, out).to_vector<float>(), losses::mean_squared_error(d.y, out).to_vector<float>());
  EXPECT_EQ(losses::mape(d.y, out).to_vector<float>(),
            losses::mean_absolute_percentage_error(d.y, out).to_vector<float>());
  // A function has its whole name, as in Keras.
  model.compile({.loss = losses::mae, .metrics = metrics::mse});
  model.evaluate(d.a, d.y, {.verbose = 0});
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss", "mean_squared_error"));
  model.compile({.loss = "mse", .metrics = metrics::MeanAbsoluteError({.name = "off"}), .weighted_metrics = {"mae"}});
  model.evaluate(d.a, d.y, {.verbose = 0});
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss", "off", "mae"));
}

TEST(KerasCallIdioms, WhatWasRecordedIsShownAsInPython) {
  History history;
  Logs logs;
  logs.set("loss", 0.5);
  history.add(0, logs);
  logs.set("loss", 2);
  history.add(1, logs);
  EXPECT_EQ((std::ostringstream() << history["loss"]).str(), "[0.5, 2.0]");
  EXPECT_EQ((std::ostringstream() << history.history["loss"]).str(), "[0.5, 2.0]");
  const std::vector<double>& values = history["loss"];
  EXPECT_THAT(values, ElementsAre(0.5, 2));
  const std::vector<double> copied = history.history["loss"];
  const std::map<std::string, std::vector<double>> all = history.history;
  EXPECT_EQ(all.at("loss"), copied);
}

TEST(KerasCallIdioms, EpochsAreCountedAsInPython) {
  History history;
  Logs logs;
  for (const double loss : {0.5, 0.25}) {
    logs.set("loss", loss);
    history.add(static_cast<int64_t>(history.epoch.size()), logs);
  }
  EXPECT_EQ(history["loss"][0], 0.5);
  EXPECT_EQ(history["loss"][-1], 0.25);
  history.history["loss"][1] = 0.125;
  EXPECT_EQ(history["loss"][size_t{1}], 0.125);
  expect_error([&] { static_cast<void>(history["loss"][2]); }, Code::out_of_range, "epoch 2 asked of 2");
  expect_error([&] { static_cast<void>(history["loss"][-3]); }, Code::out_of_range, "epoch -3 asked of 2");
}

// The old parts go with an assignment, and what is assigned must not be among them.
TEST(KerasCallIdioms, AModelIsNotAssignedToOrFromAPartOfIt) {
  const TwoInputs d;
  Sequential outer({Sequential({Dense(2)}), Dense(1)});
  outer(d.a);
  auto& inner = dynamic_cast<Sequential&>(*outer.layers()[0]);
  const std::string message = "an object and a part of it cannot be assigned to each other";
  expect_error([&] { outer = std::move(inner); }, Code::failed_precondition, message);
  expect_error([&] { inner = std::move(outer); }, Code::failed_precondition, message);
  EXPECT_EQ(outer(d.a).shape(), (Shape{12, 1}));  // nothing was taken
  const std::vector<float> expected = inner(d.a).to_vector<float>();
  Sequential part = std::move(inner);
  outer = std::move(part);
  EXPECT_EQ(outer(d.a).to_vector<float>(), expected);
}

struct WithBody : Model {
  Sequential body{this, "body", {Dense(1, {.kernel_initializer = "ones"})}};
  Tensor call(const Tensor& x, const CallArgs&) override { return body(x); }
};

TEST(KerasCallIdioms, OwnersUseTheWeightsOfAnAssignedLayer) {
  const TwoInputs d;
  WithBody model;
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.fit(d.a, d.y, {.verbose = 0});
  model.predict(d.a, {.verbose = 0});
  model.body = Sequential({Dense(1, {.kernel_initializer = "zeros"})});
  EXPECT_EQ(model.predict(d.a, {.verbose = 0}).to_vector<float>(), std::vector<float>(12));
  model.compile({.optimizer = "sgd", .loss = "mse"});  // an optimizer belongs to the variables it was built for
  model.fit(d.a, d.y, {.verbose = 0});
  EXPECT_EQ(model.predict(d.a, {.verbose = 0}).to_vector<float>(), model(d.a).to_vector<float>());
  EXPECT_NE(model(d.a).to_vector<float>(), std::vector<float>(12));

  const auto dense = make<Dense>(1, {.kernel_initializer = "ones"});
  Sequential shared;
  shared.add(dense);
  shared.predict(d.a, {.verbose = 0});
  *dense = Dense(1, {.kernel_initializer = "zeros"});
  EXPECT_EQ(shared.predict(d.a, {.verbose = 0}).to_vector<float>(), std::vector<float>(12));
}

// A change elsewhere leaves the traced steps alone.
TEST(KerasCallIdioms, AssignmentsElsewhereDoNotTraceAgain) {
  struct Counting : Layer {
    int calls = 0;
    Tensor call(const Tensor& x, const CallArgs&) override {
      ++calls;
      return x;
    }
  };
  const TwoInputs d;
  const auto counting = std::make_shared<Counting>();
  Sequential model(std::vector<LayerPtr>{counting});
  model.predict(d.a, {.verbose = 0});
  const int traced = counting->calls;
  Sequential elsewhere({Dense(1)});
  elsewhere = Sequential({Dense(2)});
  model.predict(d.a, {.verbose = 0});
  EXPECT_EQ(counting->calls, traced);
}

TEST(KerasCallIdioms, AMovedFromLayerIsNotBuilt) {
  const TwoInputs d;
  Dense from(4);
  from(d.a);
  Dense to = std::move(from);
  EXPECT_FALSE(from.built());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(to.built());
  Dense other(2);
  other = std::move(to);
  EXPECT_FALSE(to.built());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(other(d.a).shape(), (Shape{12, 4}));
}

TEST(KerasCallIdioms, ASequentialIsAMemberOfSomething) {
  Layer* nothing = nullptr;
  expect_error([&] { Sequential(nothing, "body", {Dense(1)}); }, Code::invalid_argument,
               "the layer 'body' is a member of nothing");
}

TEST(KerasCallIdioms, LogsCountFromBothEnds) {
  Logs logs;
  logs.set("loss", 1);
  logs.set("mae", 2);
  EXPECT_EQ(logs[int64_t{1}], 2);
  EXPECT_EQ(logs[1u], 2);
  EXPECT_EQ(logs[-1], 2);
  EXPECT_EQ(logs[-2], 1);
  expect_error([&] { logs[-3]; }, Code::out_of_range, "asked for number -3");
}

}  // namespace
}  // namespace runnel::keras
