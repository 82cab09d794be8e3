// What belongs to one call, one name and one epoch: losses, metrics, layers that come and go, data that runs out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> numbers(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& t : tensors) all.push_back(t.item<float>());
  return all;
}

// --- inputs ---

TEST(KerasInputs, OfAFirstLayerHaveTheDtypeOfItsWeights) {
  Embedding embedding({.input_dim = 2100, .output_dim = 1, .input_length = 2, .dtype = "mixed_float16"});
  Sequential model({std::move(embedding)});
  EXPECT_EQ(model.inputs().leaf().dtype(), float32);
  model.set_weights({reshape(cast(range(2100) % 7, float32), {2100, 1})});
  // float16 has no 2049: it would be 2048.
  EXPECT_THAT(cast(model(Tensor{{2049, 2051}}), float32).to_vector<float>(), ElementsAre(2049 % 7, 2051 % 7));
}

// --- losses ---

// The sum of its input, where it is told to.
struct AddsSum : Layer {
  using Layer::Layer;
  Tensor call(const Tensor& x, const CallArgs&) override {
    add_loss(reduce_sum(x));
    return x;
  }
};

struct CallsTwice : Model {
  Tensor call(const Tensor& x, const CallArgs&) override {
    const Tensor y = shared(x);
    return use_other ? other(y * 10) : shared(y * 10);
  }
  AddsSum shared{this, "shared"};
  AddsSum other{this, "other"};
  bool use_other = false;
};

TEST(KerasLosses, AreAllThatOneCallAdded) {
  CallsTwice model;
  for (int i = 0; i < 2; ++i) {
    model(ones({1, 2}));
    EXPECT_THAT(numbers(model.losses()), ElementsAre(2, 20));
  }
  model.use_other = true;
  model(ones({1, 2}));
  EXPECT_THAT(numbers(model.losses()), ElementsAre(2, 20));
  model.use_other = false;
  model(ones({1, 1}));
  EXPECT_THAT(numbers(model.losses()), ElementsAre(1, 10)) << "`other` was not reached";
}

TEST(KerasLosses, OfASharedLayerCountInTracedSteps) {
  CallsTwice model;
  const auto step = function([&](const Tensor& x) {
    model(x);
    return add_n(model.losses());
  });
  EXPECT_EQ(step(ones({1, 2})).item<float>(), 22);
  EXPECT_EQ(step(ones({1, 3})).item<float>(), 33);
  EXPECT_EQ(model.losses().size(), 0u);
}

TEST(KerasLosses, OfALayerInNoModelDoNotPileUp) {
  struct Holder : Layer {
    Tensor call(const Tensor& x, const CallArgs&) override { return inner(x); }
    AddsSum inner;  // not registered
  };
  Holder layer;
  for (int i = 0; i < 3; ++i) layer(ones({1, 2}));
  EXPECT_THAT(numbers(layer.inner.losses()), ElementsAre(2));
}

TEST(KerasLosses, OfALayerWithTwoOwnersCountOnce) {
  struct Reader : Layer {
    explicit Reader(std::shared_ptr<Dense> d) : dense(std::move(d)) { track("dense", dense); }
    Tensor call(const Tensor& x, const CallArgs&) override { return (*dense)(x); }
    std::shared_ptr<Dense> dense;
  };
  const auto shared = std::make_shared<Dense>(DenseOptions{
      .units = 1, .use_bias = false, .kernel_initializer = "ones", .kernel_regularizer = regularizers::l2(0.5)});
  Sequential model(
      {Input({3}), std::make_shared<Reader>(shared), Dense({.units = 3}), std::make_shared<Reader>(shared)});
  EXPECT_THAT(numbers(model.losses()), ElementsAre(1.5));
}

// --- metrics ---

struct Tracked : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
  StepLogs train_step(const TrainingBatch& batch) override {
    GradientTape tape;
    const Nest y_pred = (*this)(batch.x, {.training = true});
    const Tensor loss = reduce_mean(square(batch.y.leaf() - y_pred.leaf()));
    apply_gradients(loss, tape);
    loss_tracker.update_state(loss);
    return compute_metrics(batch, y_pred);
  }
  Dense dense{this, "dense", {.units = 1, .kernel_initializer = "zeros"}};
  metrics::Mean loss_tracker{this, "loss_tracker", {.name = "loss"}};
};

TEST(KerasMetrics, AMemberStandsForWhatCompileMadeUnderItsName) {
  Tracked model;
  model.compile({.optimizer = optimizers::SGD(0.0), .metrics = {"mae"}});
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss"));
  const History history = model.fit(ones({4, 2}), ones({4, 1}) * 3, {.batch_size = 2, .epochs = 2, .verbose = 0});
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss", "mae"));
  EXPECT_THAT(history["loss"], ElementsAre(9, 9));
  EXPECT_THAT(history["mae"], ElementsAre(3, 3)) << "no compute_loss came before compute_metrics";
}

TEST(KerasMetrics, AMemberThatCompileIsGivenTooIsListedOnce) {
  struct WithMember : Model {
    Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
    Dense dense{this, "dense", {.units = 1, .kernel_initializer = "zeros"}};
    metrics::MeanAbsoluteError error{this, "error", {.name = "error"}};
  };
  WithMember model;
  model.compile({.optimizer = optimizers::SGD(0.0), .loss = "mse", .metrics = {model.error}});
  const History history = model.fit(ones({4, 2}), ones({4, 1}) * 3, {.batch_size = 2, .epochs = 2, .verbose = 0});
  EXPECT_THAT(model.metrics_names(), ElementsAre("loss", "error"));
  EXPECT_THAT(history["error"], ElementsAre(3, 3));
}

TEST(KerasMetrics, NamesThatAreRefusedAreRefusedAgain) {
  Sequential model({Input({2}), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae", "mae"}});
  for (int i = 0; i < 2; ++i) {
    test::expect_error(
        [&] {
          model.train_on_batch(ones({2, 2}), ones({2, 1}));
        },
        Code::invalid_argument, "two metrics with the same name");
  }
}

TEST(KerasMetrics, LogsHaveEveryNameOnce) {
  const Logs logs(StepLogs{{"a", Tensor(1.f)}, {"b", Tensor(2.f)}, {"a", Tensor(3.f)}});
  EXPECT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs["a"], 3);
}

TEST(KerasMetrics, CopiesHaveThePartsOfTheOriginal) {
  const auto names = [](const Trackable& of) {
    std::vector<std::string> all;
    for (const Trackable::Edge& edge : of.edges()) all.push_back(edge.name);
    return all;
  };
  metrics::MeanAbsoluteError original;
  const metrics::MeanAbsoluteError copy = original;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(names(copy), names(original));
  for (size_t i = 0; i < copy.edges().size(); ++i) EXPECT_EQ(copy.edges()[i].object, original.edges()[i].object);

  struct TwoOfOneName : Metric {
    TwoOfOneName() : Metric("two") { track("second", second); }
    void update_state(const Tensor&, const Tensor&, const Tensor&) override {}
    Tensor result() const override { return first.value(); }
    Variable first = add_weight("count");
    Variable second{Tensor(1.f), {.name = "count"}};
  };
  TwoOfOneName two;
  const TwoOfOneName other = two;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_THAT(names(other), ElementsAre("count", "second"));
}

// --- layers that come and go ---

TEST(KerasSequential, ALayerAddedAfterTheFirstCallCounts) {
  Sequential model({Dense({.units = 3})});
  EXPECT_EQ(model(ones({2, 4})).shape(), (Shape{2, 3}));
  model.add(Dense({.units = 5}));
  EXPECT_EQ(model.weights().size(), 4u);
  EXPECT_EQ(model(ones({2, 4})).shape(), (Shape{2, 5}));
  EXPECT_EQ(model(ones({7, 4})).shape(), (Shape{7, 5}));
  model.pop();
  EXPECT_EQ(model(ones({2, 4})).shape(), (Shape{2, 3}));
  model.pop();
  test::expect_error([&] { model(ones({2, 4})); }, Code::failed_precondition, "has no layers");
  model.add(Dense({.units = 6}));
  EXPECT_EQ(model(ones({2, 9})).shape(), (Shape{2, 6})) << "nothing was left of the first input";
}

TEST(KerasSequential, ALayerAddedAfterTrainingIsTrained) {
  Sequential model({Dense({.units = 3})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.fit(ones({4, 2}), ones({4, 3}), {.verbose = 0});
  model.add(Dense({.units = 1}));
  model.compile({.optimizer = "sgd", .loss = "mse"});  // an optimizer has slots for the variables it was built for
  const std::vector<float> before = model.get_weights()[2].to_vector<float>();
  model.fit(ones({4, 2}), ones({4, 1}) * 100, {.verbose = 0});
  EXPECT_NE(model.get_weights()[2].to_vector<float>(), before);
}

// --- errors ---

TEST(KerasErrors, OfLossesAndConstantsKeepTheirFrames) {
  Sequential model({Input({2}), Dense({.units = 3})});
  const auto failing = [](const Tensor& y_true, const Tensor& y_pred) { return matmul(y_true, y_pred); };
  model.compile({.optimizer = "sgd", .loss = failing, .run_eagerly = true});
  try {
    model.train_on_batch(ones({2, 2}), ones({2, 5}));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("in the loss of output"));
    ASSERT_FALSE(e.frames().empty());
    EXPECT_EQ(e.frames()[0].name, "MatMul");
    EXPECT_THAT(e.frames()[0].detail, HasSubstr("[2,5]"));
  }
  try {
    constant(300, uint8);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    ASSERT_FALSE(e.frames().empty());
    EXPECT_EQ(e.frames().back().name, "constant");
    EXPECT_TRUE(e.frames().back().where.known());
  }
}

// --- fit ---

struct Watcher : Callback {
  void on_train_end(const Logs&) override { ++ends; }
  void on_epoch_end(int64_t, Logs&) override { epochs.push_back(params().epochs); }
  void on_test_begin(const Logs&) override { ++tests; }
  std::vector<int64_t> epochs;
  int ends = 0;
  int tests = 0;
};

TEST(KerasFit, DataThatEndsWithAnEpochEndsTraining) {
  Sequential model({Input({2}), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  Watcher watcher;
  ::testing::internal::CaptureStderr();
  // 4 batches: two epochs of two, and nothing for the third.
  const History history = model.fit(data::from_tensor_slices(ones({8, 2}), ones({8, 1})).batch(2),
                                    {.epochs = 4, .verbose = 0, .callbacks = {watcher}, .steps_per_epoch = 2});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("ran out after 0 steps"));
  EXPECT_EQ(history["loss"].size(), 2u);
  EXPECT_EQ(watcher.ends, 1);
  test::expect_error(
      [&] {
        model.fit(data::from_tensor_slices(ones({8, 2}), ones({8, 1})).batch(2).skip(4),
                  {.epochs = 4, .verbose = 0, .steps_per_epoch = 2});
      },
      Code::invalid_argument, "no batch in epoch 1");
}

TEST(KerasFit, ValidationLeavesTheParametersOfFit) {
  Sequential model({Input({2}), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  Watcher watcher;
  const Tensor x = ones({4, 2}), y = ones({4, 1});
  model.fit(x, y, {.epochs = 3, .verbose = 0, .callbacks = {watcher}, .validation_split = 0.5});
  EXPECT_THAT(watcher.epochs, ElementsAre(3, 3, 3));
  EXPECT_EQ(watcher.tests, 3);
  test::expect_error([&] { model.fit(x, y, {.verbose = 0, .validation_split = 0.5, .validation_freq = 0}); },
                     Code::invalid_argument, "validation_freq is 0");
}

// --- iterators ---

TEST(IteratorState, IsCheckedBeforeAnythingIsSet) {
  const auto numbers = data::range(10);
  data::AnyIterator iterator = data::AnyDataset(numbers).make_iterator();
  TrackableDict root;
  root.set("iterator", iterator);
  const std::vector<SavableValue> values = root.find_edge("iterator")->object->savable_values();
  ASSERT_EQ(values.size(), 1u);
  const std::string good = iterator.save();
  values[0].check({Tensor(good)});
  std::string damaged = good;
  damaged[3] = static_cast<char>(damaged[3] ^ 1);
  test::expect_error([&] { values[0].check({Tensor(damaged)}); }, Code::data_loss, "damaged");
  test::expect_error([&] { values[0].check({Tensor(std::string())}); }, Code::data_loss, "no saved state");
  const std::string other = data::AnyDataset(numbers.take(3)).make_iterator().save();
  test::expect_error([&] { values[0].check({Tensor(other)}); }, Code::failed_precondition, "another pipeline");
}

// --- callbacks that change the model, and what compile forgets ---

Sequential one_unit() { return Sequential({Dense({.units = 1, .kernel_initializer = "zeros"})}); }

TEST(KerasCallbacks, MayCompileTheModelOrAddALayer) {
  for (const bool adds : {false, true}) {
    Sequential model = one_unit();
    model.compile({.optimizer = "sgd", .loss = "mse"});
    int batches = 0;
    LambdaCallback change({.on_train_batch_end = [&](int64_t, const Logs&) {
      if (++batches != 1) return;
      if (adds) {
        model.add(Dense({.units = 1}));
      } else {
        model.compile({.optimizer = "sgd", .loss = "mae"});
      }
    }});
    const auto fit = [&] {
      model.fit(ones({8, 2}), ones({8, 1}), {.batch_size = 2, .verbose = 0, .callbacks = {change}});
    };
    if (adds) {  // the optimizer knows nothing of the new weights, as in Keras
      test::expect_error(fit, Code::not_found, "is not among the 2 that the optimizer was built for");
      model.compile({.optimizer = "sgd", .loss = "mse"});
    }
    fit();
    EXPECT_EQ(batches, adds ? 5 : 4);
  }
}

struct CountsCalls : Model {
  Tensor call(const Tensor& x, const CallArgs&) override {
    ++calls;
    return x * 2;
  }
  int calls = 0;
};

TEST(KerasCompile, TracesPredictAnew) {
  CountsCalls model;
  model.compile({});
  model.predict(ones({2, 1}), {.verbose = 0});
  model.compile({.run_eagerly = true});
  const int before = model.calls;
  model.predict(ones({2, 1}), {.verbose = 0});
  EXPECT_GT(model.calls, before);
}

// A loss that only a branch knows cannot be collected: not silently dropped either.
struct LossInABranch : Model {
  Tensor call(const Tensor& x, const CallArgs&) override {
    return cond(
        reduce_sum(x) > 0, [&] { return inner(x); }, [&] { return x; });
  }
  AddsSum inner{this, "inner"};
};

TEST(KerasLosses, OfATracedBranchAreAnError) {
  LossInABranch model;
  model(ones({1, 2}));
  EXPECT_THAT(numbers(model.losses()), ElementsAre(2));  // run at once, it is as any other
  auto step = function([&](const Tensor& x) { return model(x); });
  test::expect_error([&] { step(ones({1, 2})); }, Code::failed_precondition, "[add_loss]");
}

TEST(KerasOptimizers, SetWeightsChangesNothingWhenOneDoesNotFit) {
  optimizers::Adam adam;
  adam.build({Variable(Tensor{1.f})});
  std::vector<Tensor> weights = adam.get_weights();
  weights[0] = Tensor(int64_t{5});
  weights.back() = Tensor{1.f, 2.f};
  test::expect_error([&] { adam.set_weights(weights); }, Code::invalid_argument, "the value [2]");
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), 0);
}

TEST(KerasOptimizers, KeepTheirScheduleOnceTheyTrain) {
  const optimizers::schedules::ExponentialDecay one(
      {.initial_learning_rate = 0.1, .decay_steps = 10, .decay_rate = 0.5});
  const optimizers::schedules::ExponentialDecay other(
      {.initial_learning_rate = 0.2, .decay_steps = 10, .decay_rate = 0.5});
  optimizers::SGD sgd(one);
  sgd.set_learning_rate(other);
  const Variable v(Tensor(1.f));
  sgd.apply_gradients({{Tensor(1.f), v}});
  EXPECT_FLOAT_EQ(v.value().item<float>(), 0.8f);
  test::expect_error([&] { sgd.set_learning_rate(one); }, Code::failed_precondition, "schedule");
}

}  // namespace
}  // namespace runnel::keras
