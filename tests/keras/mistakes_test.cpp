// What a user gets wrong, and what is said about it: members in vectors or not registered, shapes that broadcast, wrong
// names, and the line that an error names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/told.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::refusal_of;
using test::told_by;
using ::testing::HasSubstr;
using ::testing::Not;

std::string line_text(int line) { return "mistakes_test.cpp:" + std::to_string(line) + ")"; }

// --- members ---

struct InVector : Model {
  explicit InVector(int count) {
    for (int i = 0; i < count; ++i) {
      blocks.emplace_back(this, "block_" + std::to_string(i), DenseOptions{.units = 2});
      means.emplace_back(this, "mean_" + std::to_string(i),
                         metrics::MetricOptions{.name = "mean_" + std::to_string(i)});
    }
  }
  Tensor call(const Tensor& x, const CallArgs&) override {
    Tensor y = x;
    for (Dense& block : blocks) y = block(y);
    return y;
  }
  std::vector<Dense> blocks;
  std::vector<metrics::Mean> means;
};

TEST(Members, MayStandInAVectorThatGrows) {
  InVector model(5);
  ASSERT_EQ(model.layers().size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(model.layers()[i], &model.blocks[i]);
    EXPECT_EQ(model.metrics()[i], &model.means[i]);
  }
  model(ones({1, 2}));
  EXPECT_EQ(model.trainable_variables().size(), 10u);
  model.blocks.pop_back();
  model.means.clear();
  EXPECT_EQ(model.layers().size(), 4u);
  EXPECT_TRUE(model.metrics().empty());
}

struct Orphan : Model {
  Dense dense{nullptr, "dense", {.units = 1}};
};
struct OrphanMetric : Model {
  metrics::Mean mean{nullptr, "mean"};
};

TEST(Members, OfNothingAreAnError) {
  expect_error([] { Orphan model; }, Code::invalid_argument, "Write {this, \"dense\"}");
  expect_error([] { OrphanMetric model; }, Code::invalid_argument, "Write {this, \"mean\"}");
}

struct HalfRegistered : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return forgotten(known(x)) * scale; }
  Dense known{this, "known", {.units = 2}};
  Dense forgotten{{.units = 1, .name = "forgotten"}};
  Variable scale{Tensor(2.f), {.name = "scale"}};
};

TEST(Members, ThatAreNotRegisteredAreWarnedOfOnce) {
  HalfRegistered model;
  const std::string first = told_by([&] { model(ones({1, 2})); });
  EXPECT_THAT(first, HasSubstr("layer 'forgotten' is called in 'half_registered', but is no part of it"));
  EXPECT_THAT(first, HasSubstr("{this, "));
  EXPECT_EQ(told_by([&] { model(ones({1, 2})); }), "");
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto fit = [&] { model.fit(ones({4, 2}), ones({4, 1}), {.batch_size = 2, .epochs = 2, .verbose = 0}); };
  const std::string in_fit = told_by(fit);
  EXPECT_THAT(in_fit, HasSubstr("trainable variables that are no part of it, and does not train or save them: scale."));
  EXPECT_EQ(told_by(fit), "");
}

struct Registered : Model {
  explicit Registered(std::shared_ptr<Dense> given) : shared(std::move(given)) { track("shared", shared); }
  Tensor call(const Tensor& x, const CallArgs&) override { return (*shared)(tower(x) + Dropout({.rate = 0.1})(x)); }
  Sequential tower{{Dense({.units = 2}), BatchNormalization()}};
  std::shared_ptr<Dense> shared;
};

TEST(Members, ThatAreRegisteredAreNot) {
  Registered model(keras::make<Dense>({.units = 2}));
  model.track("tower", model.tower);
  model.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_EQ(told_by([&] { model.fit(ones({4, 2}), ones({4, 2}), {.verbose = 0}); }), "");
}

TEST(Members, ALayerThatAModelSharesIsNoCopy) {
  static_assert(!std::is_copy_constructible_v<Dense>);
  const auto dense = keras::make<Dense>({.units = 3});
  Sequential model({dense});
  model(ones({1, 2}));
  EXPECT_EQ(dense->weights().size(), 2u);
}

// --- callbacks ---

struct HearsEpochs : Callback {
  void on_epoch_end(int64_t, Logs&) override {}
};
struct HidesEpochs : Callback {
  void on_epoch_end(int64_t, const Logs&) {}
};
struct HidesBatches : Callback {
  void on_train_batch_end(int, const Logs&) {}
};
struct HidesTrain : Callback {
  void on_train_begin() {}
};

TEST(Callbacks, ThatHideAnEventDoNotCompile) {
  using namespace callback_detail;
  static_assert(hears_epoch_end<HearsEpochs> && hears_batches<HearsEpochs> && hears_passes<HearsEpochs>);
  static_assert(hears_epoch_end<callbacks::EarlyStopping> && hears_batches<callbacks::TerminateOnNaN>);
  static_assert(!hears_epoch_end<HidesEpochs> && !hears_batches<HidesBatches> && !hears_passes<HidesTrain>);
}

// --- shapes and classes ---

TEST(Losses, BinaryCrossentropyDoesNotBroadcast) {
  const Tensor labels = ones({4, 1}), predictions = ones({4, 3}) * 0.5f;
  for (const bool from_logits : {false, true}) {
    expect_error(
        [&] { losses::binary_crossentropy(labels, predictions, from_logits); }, Code::invalid_argument,
        "logits and labels must have the same shape, received y_pred of shape [4,3] and y_true of shape [4,1]");
  }
  Sequential model({Dense({.units = 3, .activation = "sigmoid"})});
  model.compile({.loss = "binary_crossentropy"});
  expect_error([&] { model.fit(ones({4, 2}), labels, {.verbose = 0}); }, Code::invalid_argument, "the same shape");
}

Sequential three_classes() {
  Sequential model({Dense({.units = 3, .activation = "softmax"})});
  model.compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
  return model;
}

TEST(ClassWeights, AreGivenForEveryClass) {
  Sequential model = three_classes();
  const auto fit = [&](const std::map<int64_t, double>& weights) {
    model.fit(ones({4, 2}), Tensor{0, 1, 2, 1}, {.verbose = 0, .class_weight = weights});
  };
  fit({{0, 1.0}, {1, 2.0}, {2, 3.0}});
  expect_error([&] { fit({{0, 1.0}, {2, 3.0}}); }, Code::invalid_argument, "class 0 is followed by 2");
  expect_error([&] { fit({{1, 1.0}}); }, Code::invalid_argument, "the classes from 0");
  expect_error([&] { fit({{-1, 1.0}, {0, 1.0}}); }, Code::invalid_argument, "the classes from 0");
  expect_error([&] { fit({{0, 1.0}, {1, 1.0}}); }, Code::invalid_argument, "the classes 0 to 1, but a label is 2");
}

// --- lines ---

TEST(Lines, OfLayerCalls) {
  Dense dense({.units = 2});
  Embedding embedding({.input_dim = 3, .output_dim = 2});
  Conv2D conv({.filters = 1, .kernel_size = 5});
  LSTM lstm({.units = 2});
  const auto expect_line = [](const std::string& message, int line) {
    EXPECT_THAT(message, HasSubstr(line_text(line)));
    EXPECT_THAT(message, Not(HasSubstr("runnel/keras/")));
    EXPECT_EQ(message.find(" (at "), message.rfind(" (at ")) << message;
  };
  expect_line(refusal_of([&] { dense(ones({2})); }), __LINE__);
  expect_line(refusal_of([&] { embedding(Tensor{1, 7}); }), __LINE__);
  expect_line(refusal_of([&] { conv(ones({1, 3, 3, 1})); }), __LINE__);
  expect_line(refusal_of([&] { lstm(ones({1, 3, 2}), {.initial_state = {ones({1, 3}), ones({1, 3})}}); }), __LINE__);
  expect_line(refusal_of([&] { Dense({.units = 2})(Tensor("text")); }), __LINE__);
  const auto shared = keras::make<Dense>({.units = 2});
  expect_line(refusal_of([&] { shared(ones({2})); }), __LINE__);
  Sequential model({Dense({.units = 2}), Dense({.units = 2})});
  model(ones({1, 4}));
  expect_line(refusal_of([&] { model(ones({1, 5})); }), __LINE__);
}

int line_of_own_call = 0;
struct OwnCall : Model {
  Tensor call(const Tensor& x, const CallArgs&) override {
    line_of_own_call = __LINE__ + 1;
    return dense(reshape(x, {-1}));
  }
  Dense dense{this, "dense", {.units = 1}};
};

TEST(Lines, OfCodeOfTheUserInAModelAreItsOwn) {
  OwnCall model;
  const std::string eager = refusal_of([&] { model(ones({2, 2})); });
  EXPECT_THAT(eager, HasSubstr(line_text(line_of_own_call)));
  model.compile({.loss = "mse"});
  const std::string traced = refusal_of([&] { model.fit(ones({2, 2}), ones({2, 1}), {.verbose = 0}); });
  EXPECT_THAT(traced, HasSubstr(line_text(line_of_own_call)));
}

TEST(Lines, OfCompileFitAndEvaluate) {
  Sequential model = three_classes();
  const Tensor x = ones({4, 2}), wrong = Tensor{0, 1, 2, 9};
  const auto expect_line = [](const std::string& message, int line, const std::string& text) {
    EXPECT_THAT(message, HasSubstr(line_text(line)));
    EXPECT_THAT(message, HasSubstr(text));
    EXPECT_THAT(message, Not(HasSubstr("runnel/keras/")));
  };
  expect_line(refusal_of([&] { model.fit(x, wrong, {.verbose = 0}); }), __LINE__, "9");
  expect_line(refusal_of([&] { model.fit(x, wrong, {.verbose = 0}); }), __LINE__, "9");
  expect_line(refusal_of([&] { model.evaluate(x, wrong, {.verbose = 0}); }), __LINE__, "9");
  expect_line(refusal_of([&] { model.fit(x, Tensor{0, 1}, {.verbose = 0}); }), __LINE__, "ambiguous");
  expect_line(refusal_of([&] { model.predict(ones({0, 2}), {.verbose = 0}); }), __LINE__, "[predict]");
  expect_line(refusal_of([&] { model.fit(x, Tensor{"a", "b", "c", "d"}, {.verbose = 0}); }), __LINE__, "string");
  expect_line(refusal_of([&] { model.compile({.optimizer = "adm"}); }), __LINE__, "adm");
  expect_line(refusal_of([&] { model.compile({.loss = "msee"}); }), __LINE__, "msee");
  Sequential other({Dense({.units = 1})});
  expect_line(refusal_of([&] { other.fit(x, x, {.verbose = 0}); }), __LINE__, "must be compiled");
}

TEST(Lines, OfOptimizers) {
  optimizers::Adam adam;
  const Variable v(ones({2}));
  const std::string message = refusal_of([&] { adam.apply_gradients({{Tensor(ones({3})), v}}); });
  EXPECT_THAT(message, HasSubstr(line_text(__LINE__ - 1)));
  EXPECT_THAT(message, Not(HasSubstr("runnel/keras/")));
}

// --- what to do ---

TEST(Advice, LayersWithSeveralResults) {
  LSTM lstm({.units = 2, .return_state = true});
  expect_error(
      [&] {
        const Tensor y = lstm(ones({1, 3, 2}));
      },
      Code::invalid_argument, "gives a list of 3, not one tensor. Call it with a Nest");
}

struct OnlyTrains : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return dense(x); }
  StepLogs train_step(const TrainingBatch& batch) override {
    GradientTape tape;
    const Tensor loss = reduce_mean(square(batch.y.leaf() - (*this)(batch.x, {.training = true}).leaf()));
    apply_gradients(loss, tape);
    return {{"loss", loss}};
  }
  Dense dense{this, "dense", {.units = 1}};
};

TEST(Advice, OfEvaluate) {
  OnlyTrains model;
  model.compile({.optimizer = "sgd"});
  model.fit(ones({4, 2}), ones({4, 1}), {.verbose = 0});
  const std::string message = refusal_of([&] { model.evaluate(ones({4, 2}), ones({4, 1}), {.verbose = 0}); });
  EXPECT_THAT(message, HasSubstr("[evaluate]"));
  EXPECT_THAT(message, HasSubstr("needs a test_step of its own"));
  expect_error([&] { model.evaluate(Tensor(1.f), Tensor(1.f)); }, Code::invalid_argument,
               "[evaluate] the data must be");
  // Metrics alone are enough, as in Keras; the loss is 0.
  model.compile({.metrics = {"mae"}});
  const Logs logs = model.evaluate(ones({4, 2}), ones({4, 1}), {.verbose = 0});
  EXPECT_EQ(logs["loss"], 0);
  EXPECT_NE(logs.find("mae"), nullptr);
}

TEST(Advice, OfFit) {
  Sequential frozen = three_classes();
  frozen(ones({1, 2}));
  frozen.set_trainable(false);
  frozen.compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
  expect_error(
      [&] {
        frozen.fit(ones({4, 2}), Tensor{0, 1, 2, 0}, {.verbose = 0});
      },
      Code::failed_precondition, "All its layers are frozen");
  Sequential model = three_classes();
  expect_error(
      [&] {
        model.fit(data::from_tensor_slices(ones({4, 2}), Tensor{0, 1, 2, 0}), {.verbose = 0});
      },
      Code::invalid_argument,
      "[fit] the dataset gives single samples, not batches: an element is float32[2], int32[]. Group them: "
      "dataset.batch(32)");
}

TEST(Advice, NamesThatThereAre) {
  for (const char* known : {"acc", "accuracy", "mse", "mae", "binary_accuracy", "AUC"}) {
    EXPECT_THAT(refusal_of([] { metrics::get("acuracy"); }), HasSubstr(std::string(" ") + known + ",")) << known;
  }
  for (const char* known : {"mse", "mae", "bce", "mean_squared_error"}) {
    EXPECT_THAT(refusal_of([] { losses::get("msee"); }), HasSubstr(std::string(", ") + known + ",")) << known;
  }
  History history;
  EXPECT_THAT(refusal_of([&] { history["acc"]; }), HasSubstr("there are: none"));
  Logs logs;
  logs.set("loss", -std::nan(""));
  history.add(0, logs);
  EXPECT_THAT(refusal_of([&] { history["acc"]; }), HasSubstr("nothing was recorded as 'acc'; there are: loss"));
  EXPECT_EQ((std::ostringstream() << logs).str(), "[nan]");
}

TEST(Callbacks, WithoutAModelOrAnObject) {
  struct Early : Callback {
    Early() { model()->name(); }
  };
  expect_error([] { Early early; }, Code::failed_precondition, "[callback] model() before training");
  Sequential model = three_classes();
  expect_error(
      [&] {
        model.fit(ones({4, 2}), Tensor{0, 1, 2, 0}, {.verbose = 0, .callbacks = {CallbackPtr()}});
      },
      Code::invalid_argument, "empty pointer");
}

TEST(Losses, MoreThanOutputs) {
  Sequential model({Dense({.units = 3, .activation = "softmax"})});
  model.compile({.loss = {"mse", "mae"}});
  expect_error(
      [&] {
        model.fit(ones({4, 2}), ones({4, 3}), {.verbose = 0});
      },
      Code::invalid_argument, "2 losses are given, but model 'sequential");
}

TEST(Advice, OfEndlessDatasetsOfUnknownSize) {
  Sequential model = three_classes();
  const auto endless = data::from_tensor_slices(ones({4, 2}), Tensor{0, 1, 2, 0})
                           .filter([](const Tensor&, const Tensor& y) { return y < 3; })
                           .batch(2)
                           .repeat();
  EXPECT_EQ(endless.cardinality(), data::INFINITE_CARDINALITY);
  expect_error([&] { model.fit(endless, {.verbose = 0}); }, Code::invalid_argument, "never ends");
}

TEST(Mistakes, FitInATracedFunction) {
  Sequential model({Dense(3)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = ones({4, 2}), y = ones({4, 3});
  const auto samples = function([&](const Tensor& n) {
    model.fit(x, y, {.verbose = 0});
    return n;
  });
  const auto batches = function([&](const Tensor& n) {
    model.fit(data::from_tensor_slices(x, y).batch(2), {.verbose = 0});
    return n;
  });
  const std::string text = "fit cannot run while a function is traced";
  expect_error([&] { samples(Tensor(1)); }, Code::failed_precondition, text);
  expect_error([&] { samples(Tensor(1)); }, Code::failed_precondition, "mistakes_test.cpp:");
  expect_error([&] { batches(Tensor(1)); }, Code::failed_precondition, text);
  const auto judged = function([&](const Tensor& n) {
    model.evaluate(x, y, {.verbose = 0});
    return n;
  });
  expect_error([&] { judged(Tensor(1)); }, Code::failed_precondition, "evaluate cannot run while a function is traced");
  model.fit(x, y, {.verbose = 0});
}

}  // namespace
}  // namespace runnel::keras
