// Metrics of probabilities and of models, and outputs by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/told.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::refusal_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// --- metrics ---

TEST(MetricsOfProbabilities, RefuseLogitsInFit) {
  const auto fit_with = [](MetricArg metric) {
    Sequential model({Input({2}), Dense({.units = 1, .kernel_initializer = "ones"})});
    model.compile({.optimizer = "sgd",
                   .loss = losses::BinaryCrossentropy({.from_logits = true}),
                   .metrics = std::vector<MetricArg>{metric}});
    model.fit(Tensor{{3.f, 4.f}, {-3.f, -4.f}}, Tensor{{1.f}, {0.f}}, {.verbose = 0});
  };
  const std::string range = "predictions must lie in [0, 1]";
  EXPECT_THAT(refusal_of([&] { fit_with(metrics::AUC()); }),
              AllOf(HasSubstr("[AUC] " + range), HasSubstr("AUC({.from_logits = true})"),
                    Not(HasSubstr("UnsortedSegmentSum"))));
  EXPECT_THAT(refusal_of([&] { fit_with(metrics::Precision()); }), HasSubstr("[Precision] " + range));
  EXPECT_THAT(refusal_of([&] { fit_with(metrics::Recall()); }), HasSubstr("[Recall] " + range));
  EXPECT_THAT(refusal_of([&] { fit_with(metrics::PrecisionAtRecall(0.5)); }),
              AllOf(HasSubstr("[PrecisionAtRecall] " + range), HasSubstr("sigmoid")));
  EXPECT_THAT(refusal_of([&] { fit_with(metrics::TruePositives()); }), HasSubstr(range));
  fit_with(metrics::AUC({.from_logits = true}));
}

struct NamesOneMetric : Model {
  Tensor call(const Tensor& x, const CallArgs&) override {
    seen.update_state(x);
    return dense(x);
  }
  std::vector<Metric*> metrics() override { return {&seen}; }
  Dense dense{this, "dense", {.units = 1, .kernel_initializer = "zeros"}};
  metrics::Mean seen{this, "seen", {.name = "seen"}};
};

TEST(MetricsOfAModel, ThatNamesItsOwnAreReportedBesideThoseOfCompile) {
  NamesOneMetric model;
  model.compile({.optimizer = optimizers::SGD(0.0), .loss = "mse", .metrics = {"mae"}});
  const History history = model.fit(ones({4, 2}), ones({4, 1}) * 2, {.epochs = 2, .verbose = 0});
  EXPECT_THAT(history["loss"], ElementsAre(4, 4));
  EXPECT_THAT(history["mae"], ElementsAre(2, 2));
  EXPECT_THAT(history["seen"], ElementsAre(1, 1));
  // They start anew with every pass.
  const Logs logs = model.evaluate(ones({4, 2}), ones({4, 1}), {.verbose = 0});
  EXPECT_EQ(logs["mae"], 1);
  EXPECT_EQ(logs["loss"], 1);
}

struct ShowsNothing : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
  StepLogs train_step(const TrainingBatch& batch) override {
    Model::train_step(batch);
    return {};
  }
  StepLogs test_step(const TrainingBatch& batch) override {
    Model::test_step(batch);
    return {};
  }
  Dense dense{this, "dense", {.units = 1, .kernel_initializer = "ones"}};
};

TEST(MetricsOfAModel, MayBeNone) {
  for (const bool run_eagerly : {false, true}) {
    ShowsNothing model;
    model.compile({.optimizer = optimizers::SGD(0.1), .loss = "mse", .run_eagerly = run_eagerly});
    const History history = model.fit(ones({4, 2}), ones({4, 1}), {.epochs = 2, .verbose = 0});
    EXPECT_THAT(history.epoch, ElementsAre(0, 1));
    EXPECT_TRUE(history.history.empty());
    EXPECT_THAT(model.dense.weights().at(0).value().to_vector<float>(), Not(ElementsAre(1, 1)));
    EXPECT_TRUE(model.train_on_batch(ones({4, 2}), ones({4, 1})).empty());
    EXPECT_TRUE(model.evaluate(ones({4, 2}), ones({4, 1}), {.verbose = 0}).empty());
  }
}

// --- outputs by name ---

TEST(OutputsByName, StandInBraces) {
  const Tensor in = Input({3});
  Model model(in, {Dense({.units = 1, .name = "price"})(in), Dense({.units = 2, .name = "kind"})(in)});
  const Tensor x = ones({4, 3});
  const Nest y = std::vector<Tensor>{zeros({4, 1}), ones({4, 2})};
  model.compile({.optimizer = "sgd", .loss = {{"price", "mse"}}, .metrics = {{"kind", {"mae"}}}});
  Logs logs = model.evaluate(x, y, {.verbose = 0});
  EXPECT_NE(logs.find("price_loss"), nullptr);
  EXPECT_EQ(logs.find("kind_loss"), nullptr);
  EXPECT_NE(logs.find("kind_mae"), nullptr);
  EXPECT_EQ(logs.find("price_mae"), nullptr);
  model.compile({.optimizer = "sgd",
                 .loss = {{"price", "mse"}, {"kind", losses::mae}},
                 .metrics = {{"price", "mae"}, {"kind", {"mse", "mae"}}},
                 .loss_weights = {{"price", 2}, {"kind", 0.5}}});
  logs = model.evaluate(x, y, {.verbose = 0});
  EXPECT_NEAR(logs["loss"], 2 * logs["price_loss"] + 0.5 * logs["kind_loss"], 1e-5);
  EXPECT_EQ(logs.size(), 6u);
  model.compile({.loss = "mse", .metrics = {{"cost", "mae"}}});
  expect_error([&] { model.evaluate(x, y, {.verbose = 0}); }, Code::invalid_argument,
               "metrics are given for output 'cost', which model");
}

TEST(OutputsByName, AreGivenOnce) {
  Sequential model({Input({2}), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const std::string text = "[compile] the output 'price' is named twice";
  expect_error([&] { model.compile({.loss = {{"price", "mse"}, {"price", "mae"}}}); }, Code::invalid_argument, text);
  expect_error(
      [&] {
        model.compile({.loss = "mse", .metrics = {{"price", {"mse"}}, {"price", {"mae"}}}});
      },
      Code::invalid_argument, text);
  expect_error(
      [&] {
        model.compile({.loss = "mse", .loss_weights = {{"price", 2}, {"price", 0.5}}});
      },
      Code::invalid_argument, text);
}

}  // namespace
}  // namespace runnel::keras
