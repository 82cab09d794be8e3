// Models written as the handbook and Keras's guides write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using testing::ElementsAre;

struct Samples {
  Tensor x = random::stateless_normal({24, 3}, {3, 4});
  Tensor y = cast(range(24) % 2, int32);
};

Sequential two_classes() { return Sequential({layers::Dense({.units = 2, .activation = "softmax"})}); }

Tensor hits(const Tensor& y_true, const Tensor& y_pred) { return metrics::sparse_categorical_accuracy(y_true, y_pred); }

struct CountSamples : Metric {
  CountSamples() : Metric("samples") {}
  explicit CountSamples(double step) : Metric("samples"), step(step) {}
  void update_state(const Tensor& y_true, const Tensor&, const Tensor&) override {
    count.assign_add(cast(shape(y_true)[0], float32) * step);
  }
  Tensor result() const override { return count; }
  double step = 1;
  Variable count = add_weight("count");
};

TEST(KerasIdioms, FunctionsAreLossesAndMetricsUnderTheirNames) {
  const Samples data;
  Sequential model = two_classes();
  model.compile({.optimizer = "sgd",
                 .loss = losses::sparse_categorical_crossentropy,
                 .metrics = {metrics::sparse_categorical_crossentropy,
                             metrics::sparse_categorical_accuracy,
                             metrics::sparse_top_k_categorical_accuracy,
                             named<hits>,
                             [](const Tensor& t, const Tensor& p) { return hits(t, p); },
                             {hits, "share"}}});
  const Logs logs = model.evaluate(data.x, data.y, {.verbose = 0});
  EXPECT_THAT(model.metrics_names(),
              ElementsAre("loss", "sparse_categorical_crossentropy", "sparse_categorical_accuracy",
                          "sparse_top_k_categorical_accuracy", "hits", "<lambda>", "share"));
  EXPECT_NEAR(logs["loss"], logs["sparse_categorical_crossentropy"], 1e-6);
  EXPECT_EQ(logs["hits"], logs["sparse_categorical_accuracy"]);
  EXPECT_EQ(logs["hits"], logs["share"]);
  for (const LossArg& loss : {LossArg(losses::huber), LossArg(losses::mean_squared_error),
                              LossArg(losses::categorical_crossentropy), LossArg(losses::cosine_similarity)}) {
    const Config written = losses::serialize(*loss.get());
    EXPECT_TRUE(written.is_text());
    EXPECT_NE(losses::deserialize(written), nullptr);
  }
}

TEST(KerasIdioms, TwoMetricsOfOneNameAreRefused) {
  const Samples data;
  Sequential model = two_classes();
  const auto zero = [](const Tensor& t, const Tensor&) { return cast(t, float32) * 0; };
  model.compile({.loss = "sparse_categorical_crossentropy", .metrics = {zero, zero}});
  expect_error([&] { model.evaluate(data.x, data.y, {.verbose = 0}); }, Code::invalid_argument,
               "two metrics with the same name: <lambda>");
  Sequential weighted = two_classes();
  weighted.compile(
      {.loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}, .weighted_metrics = {"accuracy"}});
  weighted.evaluate(data.x, data.y, {.verbose = 0});
  EXPECT_THAT(weighted.metrics_names(), ElementsAre("loss", "accuracy", "weighted_accuracy"));
}

TEST(KerasIdioms, MetricObjectsByValue) {
  const Samples data;
  Sequential model = two_classes();
  CountSamples mine;
  model.compile({.loss = "sparse_categorical_crossentropy",
                 .metrics = {CountSamples(0.5), metrics::SparseCategoricalAccuracy({.name = "right"})}});
  EXPECT_EQ(model.evaluate(data.x, data.y, {.verbose = 0})["samples"], 12);
  model.compile({.loss = "sparse_categorical_crossentropy", .metrics = {mine}});
  model.evaluate(data.x, data.y, {.verbose = 0});
  EXPECT_EQ(mine.result().item<float>(), 24) << "a variable counts itself";
}

TEST(KerasIdioms, OptimizersAsVariablesShareTheirState) {
  const Samples data;
  optimizers::Adam adam({.learning_rate = 0.5});
  Sequential model = two_classes();
  model.compile({.optimizer = adam, .loss = losses::sparse_categorical_crossentropy});
  model.fit(data.x, data.y, {.batch_size = 8, .epochs = 2, .verbose = 0});
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), 6);
  adam.set_learning_rate(0.0);
  const std::vector<Tensor> before = model.get_weights();
  model.fit(data.x, data.y, {.verbose = 0});
  EXPECT_EQ(model.get_weights()[0].to_vector<float>(), before[0].to_vector<float>());
  EXPECT_EQ(adam.slot("m", model.trainable_variables()[0]).shape(), (Shape{3, 2}));
  // The model keeps the state though the variable is gone.
  Sequential other = two_classes();
  {
    const optimizers::SGD gone(0.1);
    other.compile({.optimizer = gone, .loss = "sparse_categorical_crossentropy"});
  }
  other.fit(data.x, data.y, {.verbose = 0});
  EXPECT_EQ(other.optimizer().iterations().value().item<int64_t>(), 1);
}

TEST(KerasIdioms, GradientsGoWithTheirVariables) {
  const Variable a(Tensor{1.f, 2.f}), b(3.f);
  optimizers::SGD sgd(0.5);
  GradientTape tape;
  const Tensor loss = reduce_sum(a * b);
  const auto grads = tape.gradient(loss, std::vector<Variable>{a, b});
  sgd.apply_gradients(zip(grads, {a, b}));
  EXPECT_THAT(a.value().to_vector<float>(), ElementsAre(-0.5f, 0.5f));
  EXPECT_EQ(b.value().item<float>(), 1.5f);
  expect_error([&] { zip(grads, {a}); }, Code::invalid_argument, "2 gradients do not go with 1 variables");
}

TEST(KerasIdioms, WhatEvaluateGivesIsShownAsInPython) {
  Logs logs;
  EXPECT_EQ((std::ostringstream() << logs).str(), "[]");
  logs.set("loss", 0.30000001192092896);
  logs.set("accuracy", 1);
  logs.set("tiny", -1.5e-7);
  EXPECT_EQ((std::ostringstream() << logs).str(), "[0.30000001192092896, 1.0, -1.5e-07]");
}

struct CountEpochs : Callback {
  void on_epoch_end(int64_t, Logs&) override { ++*epochs; }
  std::shared_ptr<int> epochs = std::make_shared<int>(0);
};

TEST(KerasIdioms, CallbacksByValue) {
  const Samples data;
  Sequential model = two_classes();
  model.compile({.loss = "sparse_categorical_crossentropy"});
  CountEpochs counting;
  callbacks::EarlyStopping stopping({.monitor = "loss", .min_delta = 100, .patience = 1});
  const auto ptr = std::make_shared<CountEpochs>();
  model.fit(
      data.x, data.y,
      {.epochs = 9, .verbose = 0, .callbacks = {stopping, CountEpochs(counting), callbacks::TerminateOnNaN(), ptr}});
  EXPECT_EQ(*counting.epochs, 2);
  EXPECT_EQ(*ptr->epochs, 2);
  EXPECT_EQ(stopping.stopped_epoch(), 1);
  model.fit(data.x, data.y, {.verbose = 0, .callbacks = {callbacks::EarlyStopping({.monitor = "loss"})}});
}

TEST(KerasIdioms, DatasetsGoEverywhere) {
  const Samples data;
  Sequential model = two_classes();
  model.compile({.loss = losses::sparse_categorical_crossentropy});
  const auto pairs = data::from_tensor_slices(data.x, data.y).batch(7);
  const auto inputs = data::from_tensor_slices(data.x).batch(7);
  model.fit(pairs, {.verbose = 0});
  model.evaluate(pairs, {.verbose = 0});
  const Tensor all = model.predict(data.x, {.verbose = 0});
  const Tensor from_inputs = model.predict(inputs, {.verbose = 0});
  const Tensor from_pairs = model.predict(pairs, {.verbose = 0});
  EXPECT_EQ(from_inputs.to_vector<float>(), all.to_vector<float>());
  EXPECT_EQ(from_pairs.to_vector<float>(), all.to_vector<float>());
  EXPECT_EQ(argmax(model.predict(inputs, {.verbose = 0}), 1).shape(), (Shape{24}));
  const data::AnyDataset any = pairs;
  EXPECT_EQ(Tensor(model.predict(any, {.verbose = 0})).to_vector<float>(), all.to_vector<float>());
}

TEST(KerasIdioms, EndlessDataIsRefusedBeforeAnythingRuns) {
  const Samples data;
  Sequential model = two_classes();
  model.compile({.loss = losses::sparse_categorical_crossentropy});
  const auto endless = data::from_tensor_slices(data.x, data.y).batch(8).repeat();
  expect_error([&] { model.fit(endless, {.verbose = 0}); }, Code::invalid_argument, ".steps_per_epoch");
  expect_error([&] { model.evaluate(endless, {.verbose = 0}); }, Code::invalid_argument, ".steps");
  expect_error([&] { model.predict(endless, {.verbose = 0}); }, Code::invalid_argument, ".steps");
  expect_error([&] { model.fit(data.x, data.y, {.verbose = 0, .validation_data = endless}); }, Code::invalid_argument,
               ".validation_steps");
  model.fit(data.x, data.y, {.verbose = 0, .validation_data = endless, .validation_steps = 2});
  EXPECT_EQ(Tensor(model.predict(endless, {.verbose = 0, .steps = 5})).shape(), (Shape{40, 2}));
  model.evaluate(endless, {.verbose = 0, .steps = 2});
}

TEST(KerasIdioms, DifferentNumbersOfSamplesAreNamed) {
  const Samples data;
  Sequential model = two_classes();
  model.compile({.loss = losses::sparse_categorical_crossentropy});
  const Tensor fewer = data.y(slice(0, 20));
  for (const double split : {0.0, 0.25}) {
    expect_error([&] { model.fit(data.x, fewer, {.verbose = 0, .validation_split = split}); }, Code::invalid_argument,
                 "Data cardinality is ambiguous:\n  x sizes: 24\n  y sizes: 20");
  }
  expect_error([&] { model.evaluate(data.x, fewer, {.verbose = 0}); }, Code::invalid_argument, "y sizes: 20");
}

TEST(KerasIdioms, WrongShapesNameLossModelAndLine) {
  const Samples data;
  Sequential model({Dense({.units = 3})}, {.name = "wide"});
  model.compile({.loss = "categorical_crossentropy"});
  expect_error([&] { model.evaluate(data.x, one_hot(data.y, 2), {.verbose = 0}); }, Code::invalid_argument,
               "in the loss of output 'dense");
  expect_error(
      [&] {
        losses::mean_squared_error(zeros({2, 3}), zeros({2, 4}));
      },
      Code::invalid_argument, "idioms_test.cpp:");
  expect_error(
      [&] {
        losses::categorical_crossentropy(zeros({2, 3}), zeros({2, 4}));
      },
      Code::invalid_argument, "idioms_test.cpp:");
}

TEST(KerasIdioms, AttentionTakesItsInputsAsArguments) {
  const Tensor x = random::stateless_normal({2, 4, 6}, {1, 2}), v = random::stateless_normal({2, 5, 6}, {1, 3});
  MultiHeadAttention heads({.num_heads = 2, .key_dim = 3});
  const std::vector<float> expected = heads(Nest::list({x, v})).leaf().to_vector<float>();
  EXPECT_EQ(heads(x, v).to_vector<float>(), expected);
  EXPECT_EQ(heads({x, v}).to_vector<float>(), expected);
  EXPECT_EQ(heads(x, v, v).to_vector<float>(), expected);
  const auto shared = make<MultiHeadAttention>({.num_heads = 2, .key_dim = 3});
  EXPECT_EQ(shared(x, x).shape(), (Shape{2, 4, 6}));
  EXPECT_EQ(shared({x, x}).shape(), (Shape{2, 4, 6}));

  layers::Attention dot;
  const Tensor weights = nn::softmax(matmul(x, v, {.transpose_b = true}));
  expect_close(dot(x, v), test::values_of(matmul(weights, v)), {2, 4, 6}, 1e-5);
  EXPECT_EQ(dot({x, v}).to_vector<float>(), dot(x, v).to_vector<float>());
  const Tensor in = Input({4, 6});
  Model model(in, layers::AdditiveAttention()(in, in));
  const Tensor sums = reduce_sum(tanh(expand_dims(x, 2) + expand_dims(x, 1)) * model.weights()[0].value(), -1);
  expect_close(model(x), test::values_of(matmul(nn::softmax(sums), x)), {2, 4, 6}, 1e-5);
  EXPECT_EQ(model_from_json(model.to_json())->to_json(), model.to_json());
  // A step sees itself and those before it.
  const Tensor first = dot(x, x, {.use_causal_mask = true})(all, slice(0, 1));
  expect_close(first, test::values_of(x(all, slice(0, 1))), {2, 1, 6}, 1e-5);
}

TEST(KerasIdioms, ANumberStandsForATuple) {
  const Tensor image = ones({1, 8, 8, 2});
  EXPECT_EQ(Conv2D({.filters = 3, .kernel_size = 3, .strides = 2, .dilation_rate = 1})(image).shape(),
            (Shape{1, 3, 3, 3}));
  EXPECT_EQ(Conv2D({.filters = 3, .kernel_size = {3, 1}})(image).shape(), (Shape{1, 6, 8, 3}));
  EXPECT_EQ(MaxPooling2D({.pool_size = 2, .strides = 1})(image).shape(), (Shape{1, 7, 7, 2}));
  EXPECT_EQ(ZeroPadding2D({.padding = 2})(image).shape(), (Shape{1, 12, 12, 2}));
  EXPECT_EQ(UpSampling2D({.size = 2})(image).shape(), (Shape{1, 16, 16, 2}));
  EXPECT_EQ(BatchNormalization({.axis = -1})(image).shape(), image.shape());
}

TEST(KerasIdioms, AnInputShapeBuildsASequential) {
  models::Sequential model({layers::Flatten({.input_shape = {4, 2}}), layers::Dense({.units = 3})});
  EXPECT_TRUE(model.built());
  EXPECT_EQ(model.count_params(), 27);
  EXPECT_EQ(model.get_config()["layers"].items()[1]["config"]["batch_input_shape"].to_json(), "[null,4,2]");
  EXPECT_EQ(model_from_json(model.to_json())->to_json(), model.to_json());
  EXPECT_EQ(Sequential({Dense({.units = 3, .input_dim = 5})}).count_params(), 18);
  Sequential ids({Embedding({.input_dim = 9, .output_dim = 2, .input_length = 4}), Flatten(), Dense({.units = 1})});
  EXPECT_EQ(ids.count_params(), 18 + 9);
  EXPECT_EQ(ids(Tensor{{1, 2, 3, 8}}).shape(), (Shape{1, 1}));
  const Sequential fixed({Dense({.units = 3, .batch_input_shape = {7, 5}})});
  EXPECT_EQ(fixed.inputs().leaf().partial_shape(), (PartialShape{7, 5}));
}

TEST(KerasIdioms, NamesCountInTheOrderOfConstruction) {
  clear_session();
  Dense first({.units = 1}), second({.units = 1});
  EXPECT_EQ(second.name(), "dense_1");
  EXPECT_EQ(first.name(), "dense");
  const Sequential model({Dense({.units = 2}), Dense({.units = 2})});
  EXPECT_EQ(model.layers()[0]->name(), "dense_2");
  EXPECT_EQ(model.layers()[1]->name(), "dense_3") << "moving a layer takes no number";
  clear_session();
  EXPECT_EQ(Dense({.units = 1}).name(), "dense");
}

TEST(KerasIdioms, CountParamsBeforeBuildSaysWhatToDo) {
  const Dense dense({.units = 1, .name = "late"});
  expect_error([&] { dense.count_params(); }, Code::failed_precondition,
               "You tried to call `count_params` on layer late, but the layer isn't built");
}

struct Recorder : Layer {
  Recorder() : Layer(LayerOptions{.name = "recorder"}) {}
  Tensor call(const Tensor& x, const CallArgs&) override {
    ++traces;
    add_loss(reduce_sum(x) * 0.5);
    return x;
  }
  int traces = 0;
};

TEST(KerasIdioms, BatchesOfManyLengthsShareATrace) {
  const auto recorder = std::make_shared<Recorder>();
  Sequential model({recorder, GlobalAveragePooling1D(), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model(zeros({2, 3, 2}));
  recorder->traces = 0;
  for (int64_t length = 1; length <= 100; ++length) {
    model.train_on_batch(ones({4, length, 2}), ones({4, 1}));
  }
  EXPECT_LE(recorder->traces, 4);
  // A last batch that is shorter has a trace of its own, and the whole ones keep their sizes.
  const auto plain = std::make_shared<Recorder>();
  Sequential other({plain, Flatten(), Dense({.units = 1})});
  other.compile({.optimizer = "sgd", .loss = "mse"});
  other(zeros({2, 3, 2}));
  plain->traces = 0;
  other.fit(ones({10, 3, 2}), ones({10, 1}), {.batch_size = 4, .epochs = 3, .verbose = 0});
  EXPECT_EQ(plain->traces, 2);
}

// Works for known lengths only.
struct NeedsLength : Layer {
  NeedsLength() : Layer(LayerOptions{.name = "needs_length"}) {}
  Tensor call(const Tensor& x, const CallArgs&) override {
    return reduce_sum(x, 1) / static_cast<double>(known_dim(x.partial_shape(), 1));
  }
};

TEST(KerasIdioms, LayersThatNeedSizesKeepTheirTraces) {
  Sequential model({std::make_shared<NeedsLength>(), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model(zeros({2, 3, 2}));
  for (int64_t length = 1; length <= 5; ++length) model.train_on_batch(ones({4, length, 2}), ones({4, 1}));
}

TEST(KerasIdioms, AddedLossesBelongToTheCallAndItsThread) {
  const auto layer = std::make_shared<Recorder>();
  (*layer)(ones({2, 2}));
  ASSERT_EQ(layer->losses().size(), 1u);
  EXPECT_EQ(layer->losses()[0].item<float>(), 2);
  std::thread([&] {
    EXPECT_EQ(layer->losses().size(), 0u);
    for (int i = 0; i < 100; ++i) (*layer)(ones({2, 4}));
    EXPECT_EQ(layer->losses()[0].item<float>(), 4);
  }).join();
  EXPECT_EQ(layer->losses()[0].item<float>(), 2);
  // Read in the function that calls; nothing of its graph is left afterwards.
  auto step = function([&](const Tensor& x) {
    (*layer)(x);
    EXPECT_EQ(layer->losses().size(), 1u);
    return layer->losses().at(0) + 1;
  });
  EXPECT_EQ(step(ones({1, 2})).item<float>(), 2);
  EXPECT_EQ(layer->losses().size(), 0u) << "those were the graph's";
  (*layer)(ones({1, 2}));
  EXPECT_EQ(layer->losses().size(), 1u);
}

}  // namespace
}  // namespace runnel::keras
