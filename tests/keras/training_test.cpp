// compile, fit, evaluate, predict, and what goes wrong with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runnel/base/parallel.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

// Points in four corners, a class each; and noise.
struct Corners {
  Tensor x, y;
};
Corners corners(int64_t n, int64_t seed) {
  const Tensor y = cast(range(n) % 4, int32);
  const Tensor centre = stack({cast(y / 2, int32), y % 2}, 1);
  const Tensor noise = random::stateless_normal({n, 2}, stack({Tensor(seed), Tensor(int64_t{7})}));
  return {cast(centre, float32) * 2.0 - 1.0 + noise * 0.2, y};
}

std::shared_ptr<Sequential> classifier() {
  return std::make_shared<Sequential>(
      std::initializer_list<LayerArg>{Dense({.units = 16, .activation = "tanh"}), Dense({.units = 4}), Softmax()});
}

CompileOptions how(const char* optimizer = "adam") {
  return {.optimizer = optimizer, .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}};
}

std::vector<float> all_weights(const Model& model) {
  std::vector<float> out;
  for (const Tensor& t : model.get_weights()) {
    const auto values = t.host<float>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

TEST(KerasTraining, LearnsAndTellsHow) {
  utils::set_random_seed(1);
  const Corners data = corners(400, 1);
  const auto model = classifier();
  model->compile(how());
  const History history =
      model->fit(data.x, data.y, {.batch_size = 20, .epochs = 12, .verbose = 0, .validation_split = 0.25});
  EXPECT_EQ(history.epoch.size(), 12u);
  EXPECT_LT(history["loss"].back(), history["loss"].front() / 2);
  EXPECT_GT(history["val_accuracy"].back(), 0.97);
  const Corners test = corners(100, 2);
  const Logs logs = model->evaluate(test.x, test.y, {.verbose = 0});
  EXPECT_GT(logs["accuracy"], 0.97);
  const Tensor y = model->predict(test.x, {.batch_size = 7, .verbose = 0});
  EXPECT_EQ(y.shape(), (Shape{100, 4}));
  const double by_hand = reduce_mean(metrics::sparse_categorical_accuracy(test.y, y)).item<float>();
  EXPECT_NEAR(by_hand, logs["accuracy"], 1e-6);
  const double loss = reduce_mean(losses::sparse_categorical_crossentropy(test.y, y)).item<float>();
  EXPECT_NEAR(loss, logs["loss"], 1e-5);
}

TEST(KerasTraining, EagerAndTracedStepsAreTheSameBits) {
  const Corners data = corners(60, 1);
  std::vector<std::vector<float>> results;
  for (const bool eagerly : {true, false}) {
    utils::set_random_seed(5);
    const auto model = classifier();
    CompileOptions options = how();
    options.run_eagerly = eagerly;
    model->compile(options);
    model->fit(data.x, data.y, {.batch_size = 20, .epochs = 3, .verbose = 0});
    results.push_back(all_weights(*model));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(KerasTraining, ASeedFixesARunWhateverTheThreads) {
  const Corners data = corners(200, 1);
  std::vector<std::vector<float>> results;
  const int before = num_threads();
  for (const int threads : {1, 2, 2}) {
    set_num_threads(threads);
    utils::set_random_seed(5);
    auto model = std::make_shared<Sequential>(std::initializer_list<LayerArg>{
        Dense({.units = 16, .activation = "relu"}), Dropout({.rate = 0.2}), Dense({.units = 4}), Softmax()});
    model->compile(how());
    model->fit(data.x, data.y, {.batch_size = 20, .epochs = 2, .verbose = 0});
    results.push_back(all_weights(*model));
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[1], results[2]);
}

TEST(KerasTraining, DatasetsSampleWeightsAndClassWeights) {
  const Corners data = corners(40, 1);
  const auto weights_after = [&](const std::function<void(Model&)>& fit) {
    utils::set_random_seed(3);
    const auto model = classifier();
    model->compile(how("sgd"));
    fit(*model);
    return all_weights(*model);
  };
  const auto by_tensors =
      weights_after([&](Model& m) { m.fit(data.x, data.y, {.batch_size = 8, .verbose = 0, .shuffle = false}); });
  const auto by_dataset =
      weights_after([&](Model& m) { m.fit(data::from_tensor_slices(data.x, data.y).batch(8), {.verbose = 0}); });
  EXPECT_EQ(by_tensors, by_dataset);
  // Class 3 counts nothing: as if its samples had weight 0.
  const Tensor without = cast(data.y < 3, float32);
  const auto by_class = weights_after([&](Model& m) {
    m.fit(data.x, data.y,
          {.batch_size = 8, .verbose = 0, .shuffle = false, .class_weight = {{0, 1.0}, {1, 1.0}, {2, 1.0}, {3, 0.0}}});
  });
  const auto by_sample = weights_after([&](Model& m) {
    m.fit(data.x, data.y, {.batch_size = 8, .verbose = 0, .shuffle = false, .sample_weight = without});
  });
  EXPECT_EQ(by_class, by_sample);
  EXPECT_NE(by_class, by_tensors);
}

TEST(KerasTraining, SeveralOutputsHaveLossesAndMetricsOfTheirOwn) {
  const Tensor in = Input({3});
  const Tensor a = Dense({.units = 1, .name = "a"})(in);
  const Tensor b = Dense({.units = 2, .name = "b"})(in);
  Model model(in, std::vector<Tensor>{a, b});
  model.compile({.optimizer = "sgd", .loss = {"mse", "mae"}, .metrics = {"mse"}, .loss_weights = {1.0, 0.5}});
  const Tensor x = random::stateless_normal({10, 3}, {1, 2});
  const Nest y = std::vector<Tensor>{zeros({10, 1}), ones({10, 2})};
  const Logs logs = model.evaluate(x, y, {.verbose = 0});
  const Nest out = model(Nest(x));
  const double mse = reduce_mean(square(out[0].leaf())).item<float>();
  const double mae = reduce_mean(abs(out[1].leaf() - 1.0)).item<float>();
  EXPECT_NEAR(logs["a_loss"], mse, 1e-5);
  EXPECT_NEAR(logs["b_loss"], mae, 1e-5);
  EXPECT_NEAR(logs["loss"], mse + 0.5 * mae, 1e-5);
  EXPECT_NEAR(logs["a_mse"], mse, 1e-5);
}

TEST(KerasTraining, AStepOfOnesOwn) {
  struct Counting : Model {
    Dense dense{this, "dense", {.units = 1}};
    Variable steps{0};
    Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
    StepLogs train_step(const TrainingBatch& batch) override {
      steps.assign_add(1);
      StepLogs logs = Model::train_step(batch);
      logs.emplace_back("steps", steps.value());
      return logs;
    }
  };
  Counting model;
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const History history = model.fit(ones({12, 2}), ones({12, 1}), {.batch_size = 4, .epochs = 2, .verbose = 0});
  EXPECT_THAT(history["steps"], ::testing::ElementsAre(3, 6));
}

TEST(KerasTraining, StepsPerEpochGoOnWhereTheLastEpochEnded) {
  const auto model = classifier();
  model->compile(how());
  const Corners data = corners(40, 1);
  std::vector<int64_t> epochs;
  auto watch = std::make_shared<LambdaCallback>(
      LambdaCallbackOptions{.on_epoch_end = [&](int64_t epoch, Logs&) { epochs.push_back(epoch); }});
  // 10 batches: two epochs of four, then the data runs out in the third.
  ::testing::internal::CaptureStderr();
  model->fit(data::from_tensor_slices(data.x, data.y).batch(4),
             {.epochs = 4, .verbose = 0, .callbacks = {watch}, .steps_per_epoch = 4});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("ran out after 2 steps"));
  EXPECT_THAT(epochs, ::testing::ElementsAre(0, 1, 2));
}

TEST(KerasTraining, CallbacksStopAndRestore) {
  const Corners data = corners(80, 1);
  const auto model = classifier();
  model->compile(how());
  std::vector<float> best;
  int64_t epochs = 0;
  // The value watched is best after the second epoch.
  auto script = std::make_shared<LambdaCallback>(LambdaCallbackOptions{.on_epoch_end = [&](int64_t epoch, Logs& logs) {
    const double values[] = {3, 1, 2, 2, 2, 2};
    logs.set("score", values[epoch]);
    if (epoch == 1) best = all_weights(*model);
    ++epochs;
  }});
  auto stopping = std::make_shared<EarlyStopping>(
      EarlyStoppingOptions{.monitor = "score", .patience = 2, .restore_best_weights = true});
  model->fit(data.x, data.y, {.epochs = 6, .verbose = 0, .callbacks = {script, stopping}});
  EXPECT_EQ(epochs, 4);
  EXPECT_EQ(stopping->stopped_epoch(), 3);
  EXPECT_EQ(all_weights(*model), best);
}

TEST(KerasTraining, EpochsBelowTheBaselineAreNoProgress) {
  const Corners data = corners(40, 1);
  // The score grows with every epoch: 1, 2, ...; an epoch that does not beat the baseline is waited for in vain.
  const auto epochs_with = [&](std::optional<double> baseline) {
    const auto model = classifier();
    model->compile(how());
    const auto score = std::make_shared<LambdaCallback>(LambdaCallbackOptions{
        .on_epoch_end = [](int64_t epoch, Logs& logs) { logs.set("score", static_cast<double>(epoch + 1)); }});
    const auto stopping = std::make_shared<EarlyStopping>(
        EarlyStoppingOptions{.monitor = "score", .patience = 3, .mode = "max", .baseline = baseline});
    // A value that gets worse at last, so that the counter is looked at.
    const auto fall =
        std::make_shared<LambdaCallback>(LambdaCallbackOptions{.on_epoch_end = [](int64_t epoch, Logs& logs) {
          if (epoch >= 4) logs.set("score", 0.5);
        }});
    return model->fit(data.x, data.y, {.epochs = 12, .verbose = 0, .callbacks = {score, fall, stopping}}).epoch.size();
  };
  EXPECT_EQ(epochs_with({}), 7u) << "four good epochs, then three without progress";
  EXPECT_EQ(epochs_with(2.5), 7u) << "the third and fourth beat it";
  EXPECT_EQ(epochs_with(100), 5u) << "none does: the first that is no better ends it";
}

TEST(KerasTraining, LearningRatesFollowTheCallbacks) {
  const Corners data = corners(40, 1);
  const auto model = classifier();
  model->compile(how());
  auto halve =
      std::make_shared<LearningRateScheduler>([](int64_t epoch, double rate) { return epoch == 0 ? 0.1 : rate / 2; });
  const History history = model->fit(data.x, data.y, {.epochs = 3, .verbose = 0, .callbacks = {halve}});
  EXPECT_THAT(history["lr"], ::testing::Pointwise(::testing::DoubleNear(1e-7), {0.1, 0.05, 0.025}));
  auto by_epoch = std::make_shared<LearningRateScheduler>([](int64_t epoch) { return epoch < 1 ? 0.2 : 0.3; });
  const History again = model->fit(data.x, data.y, {.epochs = 2, .verbose = 0, .callbacks = {by_epoch}});
  EXPECT_THAT(again["lr"], ::testing::Pointwise(::testing::DoubleNear(1e-7), {0.2, 0.3}));
}

TEST(KerasTraining, NaNEndsTraining) {
  const auto model = std::make_shared<Sequential>(std::initializer_list<LayerArg>{Dense({.units = 1})});
  model->compile({.optimizer = "sgd", .loss = "mse"});
  int batches = 0;
  auto count = std::make_shared<LambdaCallback>(
      LambdaCallbackOptions{.on_train_batch_end = [&](int64_t, const Logs&) { ++batches; }});
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Tensor x = fill({40, 1}, std::numeric_limits<float>::quiet_NaN());
  model->fit(x, ones({40, 1}),
             {.batch_size = 4, .verbose = 0, .callbacks = {count, std::make_shared<TerminateOnNaN>()}});
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), ::testing::HasSubstr("Batch 0: Invalid loss, terminating"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(::testing::HasSubstr("the loss of model"),
                               ::testing::Not(::testing::HasSubstr("TerminateOnNaN stops then"))));
  EXPECT_EQ(batches, 1);
}

TEST(KerasTraining, ErrorsSayWhatToDo) {
  const auto model = classifier();
  const Corners data = corners(20, 1);
  test::expect_error([&] { model->fit(data.x, data.y); }, Code::failed_precondition, "must be compiled");
  model->compile(how());
  test::expect_error([&] { model->fit(data.x, corners(19, 1).y, {.verbose = 0}); }, Code::invalid_argument, "20");
  test::expect_error(
      [&] {
        model->fit(zeros({0, 2}), zeros({0}, int32), {.verbose = 0});
      },
      Code::invalid_argument, "no samples");
  const auto samples = data::from_tensor_slices(data.x, data.y);
  test::expect_error([&] { model->fit(samples.repeat().batch(4), {.verbose = 0}); }, Code::invalid_argument,
                     "never ends");
  test::expect_error([&] { model->fit(samples.take(0).batch(4), {.verbose = 0}); }, Code::invalid_argument, "empty");
  const Tensor no_class = fill({20}, 9);
  test::expect_error([&] { model->fit(data.x, no_class, {.verbose = 0}); }, Code::invalid_argument, "9");
  model->fit(data.x, data.y, {.verbose = 0});  // still usable
  test::expect_error([&] { model->predict(zeros({4, 3}), {.verbose = 0}); }, Code::invalid_argument, "Dense");
}

}  // namespace
}  // namespace runnel::keras
