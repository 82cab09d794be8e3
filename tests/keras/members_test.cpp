// What belongs to a model: members that are registered, parts that are handed to track(), metrics, models that move,
// values that wait for weights and slots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/tensor/saved_graph.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<SavedGraph> state_of(Trackable& root) {
  ObjectGraph graph = ObjectGraph::of(root);
  std::map<std::string, Tensor> values;
  for (ObjectGraph::Node& node : graph.nodes) {
    for (ObjectGraph::Attribute& a : node.attributes) values[a.checkpoint_key] = a.value.get().at(0);
    node.object = nullptr;
  }
  return SavedGraph::make(std::move(graph), [values](const std::string& key, const std::vector<std::string>&) {
    return std::vector<Tensor>{values.at(key)};
  });
}

std::vector<std::vector<float>> floats_of(const std::vector<Variable>& variables) {
  std::vector<std::vector<float>> all;
  for (const Variable& v : variables) all.push_back(cast(v, DType::float32).to_vector<float>());
  return all;
}

// --- layers held by pointer ---

struct HeldByPointer : Model {
  HeldByPointer() { track("dense", dense); }
  Tensor call(const Tensor& x, const CallArgs&) override { return (*dense)(x); }
  std::shared_ptr<Dense> dense = std::make_shared<Dense>(DenseOptions{.units = 1});
};

TEST(TrackedParts, LayersHandedToTrackAreTrained) {
  HeldByPointer model;
  model(zeros({1, 2}));
  EXPECT_EQ(model.trainable_weights().size(), 2u);
  EXPECT_EQ(model.layers().size(), 1u);
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto before = floats_of(model.trainable_weights());
  model.fit(ones({4, 2}), zeros({4, 1}), {.verbose = 0});
  EXPECT_NE(floats_of(model.trainable_weights()), before);
  model.set_trainable(false);
  EXPECT_TRUE(model.trainable_weights().empty());
  EXPECT_EQ(model.non_trainable_weights().size(), 2u);
}

struct Forgotten : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
  Dense dense{{.units = 1}};  // no {this, "dense"}
};

TEST(TrackedParts, TrainingNothingIsAnError) {
  Forgotten model;
  model(zeros({1, 2}));
  optimizers::SGD sgd(0.1);
  const auto loss = [&] { return reduce_sum(model(ones({1, 2}))); };
  test::expect_error([&] { sgd.minimize(loss, model.trainable_variables()); }, Code::invalid_argument,
                     "{this, \"dense\"");
  test::expect_error([&] { sgd.apply_gradients({}); }, Code::invalid_argument,
                     "No gradients provided for any variable");
  model.compile({.optimizer = "sgd", .loss = "mse"});
  test::expect_error(
      [&] {
        model.fit(ones({4, 2}), zeros({4, 1}), {.verbose = 0});
      },
      Code::failed_precondition, "Layers that are members must be registered");
}

struct WithParts : Layer {
  explicit WithParts(LayerOptions options = {}) : Layer(std::move(options)) {
    const auto list = std::make_shared<TrackableList>();
    list->append(in_list);
    track("list", list);
    track("own", own);
  }
  Tensor call(const Tensor& x, const CallArgs&) override { return x * own * in_list; }
  Variable in_list{Tensor(1.f), {.name = "in_list"}};
  Variable own{Tensor(2.f), {.name = "own"}};
  metrics::Mean seen{this, "seen"};
};

TEST(TrackedParts, VariablesAndMetricsCountAsWeights) {
  WithParts layer;
  std::vector<std::string> trainable, others;
  for (const Variable& v : layer.trainable_weights()) trainable.push_back(v.name());
  for (const Variable& v : layer.non_trainable_weights()) others.push_back(v.name());
  EXPECT_THAT(trainable, ElementsAre("own", "in_list"));
  EXPECT_THAT(others, ElementsAre("total", "count"));
}

// --- metrics of a model ---

// Keras's own example of a train_step.
struct OwnStep : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
  StepLogs train_step(const TrainingBatch& batch) override {
    GradientTape tape;
    const Tensor loss = reduce_mean(square(batch.y.leaf() - (*this)(batch.x).leaf()));
    apply_gradients(loss, tape);
    loss_tracker.update_state(loss);
    return {{"loss", loss_tracker.result()}};
  }
  StepLogs test_step(const TrainingBatch& batch) override {
    loss_tracker.update_state(reduce_mean(square(batch.y.leaf() - (*this)(batch.x).leaf())));
    return {{"loss", loss_tracker.result()}};
  }
  Dense dense{this, "dense", {.units = 1, .kernel_initializer = "zeros"}};
  metrics::Mean loss_tracker{this, "loss_tracker", {.name = "loss"}};
};
struct NamesItsMetrics : OwnStep {
  std::vector<Metric*> metrics() override { return {&loss_tracker}; }
};

template <class M>
void expect_fresh_metric_every_epoch() {
  M model;
  model.compile({.optimizer = optimizers::SGD(0.0)});  // every loss is 4
  const Tensor x = ones({4, 2}), y = ones({4, 1}) * 2;
  History history = model.fit(x, y, {.batch_size = 2, .epochs = 3, .verbose = 0});
  model.fit(x, y * 0, {.batch_size = 2, .verbose = 0});
  EXPECT_FLOAT_EQ(model.loss_tracker.result().template item<float>(), 0);
  const Logs logs = model.evaluate(x, y, {.verbose = 0});
  EXPECT_FLOAT_EQ(*logs.find("loss"), 4);
  EXPECT_NE(model.find_edge("loss_tracker"), nullptr);
}

TEST(ModelMetrics, OfTheModelStartAnewWithEveryEpoch) {
  expect_fresh_metric_every_epoch<OwnStep>();
  expect_fresh_metric_every_epoch<NamesItsMetrics>();
  OwnStep model;
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss"));
}

struct Watching : Layer {
  using Layer::Layer;
  Tensor call(const Tensor& x, const CallArgs&) override {
    mean.update_state(x);
    return x;
  }
  metrics::Mean mean{this, "mean", {.name = "seen"}};
};

TEST(ModelMetrics, OfLayersAreReported) {
  Sequential model({Input({2}), std::make_shared<Watching>(), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.fit(ones({4, 2}), zeros({4, 1}), {.verbose = 0});
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss", "seen"));
  const Logs logs = model.evaluate(ones({4, 2}) * 3, zeros({4, 1}), {.verbose = 0});
  EXPECT_FLOAT_EQ(*logs.find("seen"), 3);
}

// --- moving ---

Sequential made_by_a_function() {
  Sequential model({Input({2})});
  model.add(Dense({.units = 3}));
  model.add(Dense({.units = 1}));
  model.compile({.optimizer = "adam", .loss = "mse"});
  return model;
}
Model functional_made_by_a_function() {
  const Tensor x = Input({2});
  Model model(x, Dense({.units = 1})(x), {.name = "made"});
  return model;
}

TEST(MovedModels, WorkWhereTheyAre) {
  Sequential model = made_by_a_function();
  const Tensor x = ones({4, 2});
  model.fit(x, zeros({4, 1}), {.verbose = 0});
  const Tensor before = model.predict(x, {.verbose = 0});
  Sequential moved = std::move(model);
  EXPECT_EQ(moved.predict(x, {.verbose = 0}).to_vector<float>(), before.to_vector<float>());
  EXPECT_EQ(moved.trainable_weights().size(), 4u);
  EXPECT_EQ(moved.find_edge("optimizer")->object, &moved.optimizer().node());
  moved.fit(x, zeros({4, 1}), {.verbose = 0});
  EXPECT_EQ(moved.optimizer().iterations().value().item<int64_t>(), 2);

  Model functional = functional_made_by_a_function();
  EXPECT_EQ(functional.name(), "made");
  EXPECT_EQ(functional(x).shape(), (Shape{4, 1}));
}

TEST(MovedModels, WithMembersOfTheirOwnAreAnError) {
  OwnStep model;
  test::expect_error([&] { OwnStep moved(std::move(model)); }, Code::failed_precondition,
                     "its part 'dense' is a member");
}

// --- values that wait ---

TEST(PendingWeights, ComeWhenTheLayerIsBuilt) {
  clear_session();
  Sequential saved({Dense({.units = 3}), BatchNormalization(), Dense({.units = 1})});
  saved(random::uniform({2, 4}));
  saved.layers()[1]->set_weights({ones({3}) * 5, ones({3}), ones({3}), ones({3})});
  const auto state = state_of(saved);
  Sequential fresh({Dense({.units = 3}), BatchNormalization(), Dense({.units = 1})});
  state->restore(fresh);
  const Tensor x = random::uniform({2, 4});
  EXPECT_EQ(fresh(x).to_vector<float>(), saved(x).to_vector<float>());
  EXPECT_EQ(floats_of(fresh.weights()), floats_of(saved.weights()));
}

TEST(PendingWeights, ComeInsideOfATrace) {
  HeldByPointer saved, fresh;
  saved(zeros({1, 2}));
  state_of(saved)->restore(fresh);
  auto call = function([&](const Tensor& x) { return fresh(x); });
  const Tensor x = ones({3, 2});
  EXPECT_EQ(call(x).to_vector<float>(), saved(x).to_vector<float>());
}

TEST(PendingWeights, OfLayersThatAreAddedLater) {
  Sequential saved({Input({4}), Dense({.units = 3}), Dense({.units = 1})});
  Sequential fresh({Input({4})});
  state_of(saved)->restore(fresh);
  fresh.add(Dense({.units = 3}));
  fresh.add(Dense({.units = 1}));
  EXPECT_EQ(floats_of(fresh.weights()), floats_of(saved.weights()));
}

TEST(PendingWeights, OfSlotsComeWithTheFirstStep) {
  Sequential saved = made_by_a_function(), fresh = made_by_a_function();
  const Tensor x = ones({4, 2}), y = zeros({4, 1});
  saved.fit(x, y, {.epochs = 3, .verbose = 0});
  state_of(saved)->restore(fresh);
  EXPECT_EQ(fresh.optimizer().variables().size(), 1u);
  EXPECT_EQ(fresh.optimizer().iterations().value().item<int64_t>(), 3);
  saved.fit(x, y, {.verbose = 0});
  fresh.fit(x, y, {.verbose = 0});
  EXPECT_EQ(floats_of(fresh.weights()), floats_of(saved.weights()));
  EXPECT_EQ(floats_of(fresh.optimizer().variables()), floats_of(saved.optimizer().variables()));
}

TEST(PendingWeights, OfTheOptimizerWaitForCompile) {
  Sequential saved = made_by_a_function();
  saved.fit(ones({4, 2}), zeros({4, 1}), {.epochs = 2, .verbose = 0});
  Sequential fresh({Input({2}), Dense({.units = 3}), Dense({.units = 1})});
  state_of(saved)->restore(fresh);
  fresh.compile({.optimizer = "adam", .loss = "mse"});
  EXPECT_EQ(fresh.optimizer().iterations().value().item<int64_t>(), 2);
}

TEST(PendingWeights, OfNadamAloneComeWithItsFirstStep) {
  const auto step = [](Optimizer& nadam, const Variable& w) { nadam.minimize([&] { return reduce_sum(w * w); }, {w}); };
  const Variable w(Tensor{1.f, 2.f}), other(Tensor{1.f, 2.f});
  optimizers::Nadam saved({.learning_rate = 0.1}), fresh({.learning_rate = 0.1});
  step(saved, w);
  state_of(saved)->restore(fresh);
  other.assign(w);
  step(saved, w);
  step(fresh, other);
  EXPECT_EQ(other.value().to_vector<float>(), w.value().to_vector<float>());
}

TEST(PendingWeights, ThatDoNotFitAreRefusedAgainAndAgain) {
  Sequential saved({Input({2}), Dense({.units = 3}), Dense({.units = 1})});
  saved.compile({.optimizer = "adam", .loss = "mse"});
  const Tensor x = ones({4, 2}), y = zeros({4, 1});
  saved.fit(x, y, {.verbose = 0});
  Sequential frozen({Input({2}), Dense({.units = 3, .trainable = false}), Dense({.units = 1})});
  frozen.compile({.optimizer = "adam", .loss = "mse"});
  state_of(saved)->restore(frozen);
  for (int attempt = 0; attempt < 2; ++attempt) {
    test::expect_error([&] { frozen.fit(x, y, {.verbose = 0}); }, Code::invalid_argument, "shape");
  }

  Sequential narrow({Dense({.units = 3}), Dense({.units = 2})});
  state_of(saved)->restore(narrow);
  for (int attempt = 0; attempt < 2; ++attempt) {
    test::expect_error([&] { narrow(x); }, Code::invalid_argument, "shape");
  }
}

TEST(OptimizerCopies, AreOneNodeAndOneState) {
  optimizers::Nadam nadam({.learning_rate = 0.1});
  Sequential model({Input({2}), Dense({.units = 1})});
  model.compile({.optimizer = nadam, .loss = "mse"});
  EXPECT_EQ(&model.optimizer().node(), &nadam.node());
  nadam.build(model.trainable_variables());
  const Tensor x = ones({4, 2}), y = zeros({4, 1});
  model.fit(x, y, {.verbose = 0});
  EXPECT_EQ(nadam.iterations().value().item<int64_t>(), 1);
  Trackable& as_part = nadam;
  as_part.track("note", Variable(Tensor(1.f)));
  EXPECT_NE(model.optimizer().find_edge("note"), nullptr);
}

TEST(OptimizerCopies, KeepTheirKind) {
  Sequential model({Input({2}), Dense({.units = 1})});
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.compile({.optimizer = model.optimizer(), .loss = "mae"});
  EXPECT_EQ(model.optimizer().class_name(), "Adam");
  model.fit(ones({4, 2}), zeros({4, 1}), {.verbose = 0});
  optimizers::Adam adam;
  const Optimizer& base = adam;
  test::expect_error([&] { model.compile({.optimizer = base, .loss = "mse"}); }, Code::invalid_argument, "shared_ptr");
}

}  // namespace
}  // namespace runnel::keras
