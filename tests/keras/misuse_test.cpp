// What goes wrong when one begins: layers that end or are made too late, calls without end, settings of samples for
// datasets, logits where probabilities are wanted, objects that were moved from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/small_stack.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What `body` writes to standard error.
template <class F>
std::string told_by(F body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}
// The message of the Error that `body` throws.
template <class F>
std::string refusal_of(F body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Sequential small_regressor() {
  Sequential model({Input({2}), Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  return model;
}

// --- layers that end, and layers that are made too late ---

struct WithLocalLayer : Model {
  WithLocalLayer() {
    Dense local({.units = 3});
    track("local", local);
    EXPECT_EQ(layers().size(), 2u);
  }
  Tensor call(const Tensor& x, const CallArgs&) override { return kept(x); }
  Dense kept{this, "kept", {.units = 1}};
};

TEST(LayersOfOnesOwn, ALocalOneIsAPartAsLongAsItLives) {
  WithLocalLayer model;
  EXPECT_EQ(model.layers().size(), 1u);
  EXPECT_EQ(model.find_edge("local"), nullptr);
  model(ones({1, 2}));
  EXPECT_EQ(model.weights().size(), 2u);
}

struct MakesLayers : Model {
  Tensor call(const Tensor& x, const CallArgs&) override {
    Dense late({.units = 1});
    return late(known(x));
  }
  Dense known{this, "known", {.units = 2}};
};

TEST(LayersOfOnesOwn, MadeInACallAreWarnedOfOnce) {
  MakesLayers model;
  const std::string first = told_by([&] { model(ones({1, 2})); });
  EXPECT_THAT(first, HasSubstr("was made inside of the call of 'makes_layers'"));
  EXPECT_THAT(first, HasSubstr("new weights in every call"));
  EXPECT_EQ(told_by([&] { model(ones({1, 2})); }), "");
}

TEST(LayersOfOnesOwn, MadeInAFunctionAreAnError) {
  auto each_time = function([](const Tensor& x) {
    Dense late({.units = 1});
    return late(x);
  });
  expect_error([&] { each_time(ones({1, 2})); }, Code::invalid_argument, "is made in the function 'function");
  const std::string message = refusal_of([&] { each_time(ones({1, 2})); });
  EXPECT_EQ(message.find(" (at "), message.rfind(" (at ")) << message;
  auto functional = function([](const Tensor& x) {
    const Tensor in = Input({2});
    Model model(in, Dense({.units = 1})(in));
    return model(x);
  });
  expect_error([&] { functional(ones({1, 2})); }, Code::invalid_argument, "with new weights whenever that is traced");
  MakesLayers model;
  model.compile({.optimizer = "sgd", .loss = "mse"});
  told_by([&] {
    expect_error(
        [&] {
          model.fit(ones({4, 2}), ones({4, 1}), {.verbose = 0});
        },
        Code::invalid_argument, "a function makes layers on its first call only");
  });
}

TEST(OptimizersOfOnesOwn, MadeInAFunctionAreAnError) {
  const Variable w(Tensor{1.f});
  auto each_time = function([&](const Tensor& g) {
    optimizers::SGD sgd(0.1);
    sgd.apply_gradients({{g, w}});
  });
  expect_error([&] { each_time(Tensor{1.f}); }, Code::invalid_argument,
               "[SGD] an optimizer is made in the function 'function");
  std::shared_ptr<optimizers::SGD> once;
  auto lazily = function([&](const Tensor& g) {
    if (!once) once = std::make_shared<optimizers::SGD>(0.1);
    once->apply_gradients({{g, w}});
  });
  lazily(Tensor{1.f});
  lazily(Tensor{1.f});
  EXPECT_FLOAT_EQ(w.value().to_vector<float>()[0], 0.8f);
  EXPECT_EQ(once->iterations().value().item<int64_t>(), 2);
}

// As a variable may be.
TEST(LayersOfOnesOwn, MayBeMadeByTheFirstCallOfAFunction) {
  std::shared_ptr<Dense> once;
  auto f = function([&](const Tensor& x) {
    if (!once) once = std::make_shared<Dense>(DenseOptions{.units = 1});
    return (*once)(Dropout({.rate = 0.5})(x));
  });
  const Tensor x = ones({1, 2});
  const auto first = f(x).to_vector<float>();
  EXPECT_EQ(f(x).to_vector<float>(), first);
  EXPECT_EQ(f(ones({3, 2})).shape(), (Shape{3, 1}));
  EXPECT_EQ(once->weights().size(), 2u);
}

// The cell inside is made by the first call, which may be in a function that was traced before.
TEST(LayersOfOnesOwn, MayBeCalledFirstByALaterTrace) {
  LSTM lstm({.units = 2});
  auto f = function([&](const Tensor& x) { return x.partial_shape().rank() == 3 ? lstm(x) : x; });
  f(ones({1, 2}));
  EXPECT_EQ(f(ones({1, 3, 2})).shape(), (Shape{1, 2}));
}

struct CallsItself : Layer {
  using Layer::Layer;
  Tensor call(const Tensor& x, const CallArgs&) override { return (*this)(x + 1); }
};
struct BuildsItself : Layer {
  using Layer::Layer;
  void build(const PartialShape& input) override { build_from_shapes(NestOf<PartialShape>(input)); }
  Tensor call(const Tensor& x, const CallArgs&) override { return x; }
};

TEST(LayersOfOnesOwn, ThatCallThemselvesWithoutEndAreAnError) {
  test::on_small_stack([] {
    CallsItself endless;
    expect_error([&] { endless(ones({1})); }, Code::resource_exhausted, "the calls of layer 'calls_itself");
    auto traced = function([&](const Tensor& x) { return endless(x); });
    expect_error([&] { traced(ones({1})); }, Code::resource_exhausted, "used up the stack");
    BuildsItself building;
    expect_error([&] { building(ones({1})); }, Code::resource_exhausted, "used up the stack");
  });
}

// --- what is trained ---

TEST(Trainable, ChangesCountWithTheNextCompile) {
  Sequential model({Input({2}), Dense({.units = 2, .name = "first"}), Dense({.units = 1})});
  model.compile({.optimizer = optimizers::SGD(0.1), .loss = "mse"});
  const Tensor x = ones({4, 2}), y = ones({4, 1}) * 3;
  EXPECT_EQ(told_by([&] { model.fit(x, y, {.verbose = 0}); }), "");
  Layer& first = model.get_layer("first");
  first.set_trainable(false);
  const auto kernel = [&] { return first.weights()[0].value().to_vector<float>(); };
  const auto before = kernel();
  // Another size is traced anew, and trains the same.
  const std::string told = told_by([&] { model.fit(ones({3, 2}), ones({3, 1}) * 3, {.verbose = 0}); });
  EXPECT_THAT(told, HasSubstr("Discrepancy between trainable weights and collected trainable weights"));
  EXPECT_THAT(told, HasSubstr("the 4 weights"));
  const auto after = kernel();
  EXPECT_NE(after, before);
  EXPECT_EQ(told_by([&] { model.fit(x, y, {.verbose = 0}); }), "");
  model.compile({.optimizer = optimizers::SGD(0.1), .loss = "mse"});
  const auto frozen = kernel();
  EXPECT_EQ(told_by([&] { model.fit(x, y, {.verbose = 0}); }), "");
  EXPECT_EQ(kernel(), frozen);
}

std::vector<float> first_weight_of(const Layer& layer) { return layer.weights().at(0).value().to_vector<float>(); }

TEST(Trainable, IsThatOfCompileAlsoInTheFirstStep) {
  Sequential model(
      {Input({2}), Dense({.units = 2, .name = "first"}), BatchNormalization({.name = "norm"}), Dense({.units = 1})});
  model.compile({.optimizer = optimizers::SGD(0.1), .loss = "mse"});
  Layer& first = model.get_layer("first");
  Layer& norm = model.get_layer("norm");
  first.set_trainable(false);
  norm.set_trainable(false);
  const Tensor x{{1.f, 2.f}, {3.f, 5.f}, {-1.f, 4.f}}, y{{1.f}, {7.f}, {-2.f}};
  const auto before = first_weight_of(first);
  const auto mean = [&] { return norm.weights().at(2).value().to_vector<float>(); };
  EXPECT_THAT(mean(), ElementsAre(0, 0));
  const std::string told = told_by([&] { model.fit(x, y, {.verbose = 0}); });
  EXPECT_THAT(told, AllOf(HasSubstr("Discrepancy between trainable weights"), HasSubstr("[fit]"),
                          HasSubstr("training the 6 weights that were trainable when it was compiled; now 2 are")));
  EXPECT_NE(first_weight_of(first), before);
  EXPECT_THAT(mean(), Not(ElementsAre(0, 0)));
  // Outside of training it is what was set.
  EXPECT_FALSE(first.trainable());
  EXPECT_FALSE(norm.trainable());
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  const auto after_fit = first_weight_of(first);
  EXPECT_EQ(told_by([&] { model.train_on_batch(x, y); }), "") << "told once";
  EXPECT_NE(first_weight_of(first), after_fit);
  // Also after a step that failed.
  EXPECT_THROW(model.train_on_batch(ones({3, 5}), y), Error);
  EXPECT_FALSE(first.trainable());
}

TEST(Trainable, OfLayersThatAreBuiltAfterCompile) {
  const Tensor x = ones({4, 2}), y = ones({4, 1}) * 3;
  const auto make = [] {
    return Sequential({Dense({.units = 2, .kernel_initializer = "ones", .name = "first"}),
                       Dense({.units = 1, .kernel_initializer = "ones"})});
  };
  Sequential model = make();
  model.compile({.optimizer = optimizers::SGD(0.1), .loss = "mse"});
  Layer& first = model.get_layer("first");
  first.set_trainable(false);
  EXPECT_THAT(told_by([&] { model.fit(x, y, {.verbose = 0}); }),
              HasSubstr("training what was trainable when it was compiled"));
  EXPECT_THAT(first_weight_of(first), Not(ElementsAre(1, 1, 1, 1)));
  // The other way round; and the record goes where the model is moved.
  Sequential made = make();
  made.get_layer("first").set_trainable(false);
  made.compile({.optimizer = optimizers::SGD(0.1), .loss = "mse"});
  Sequential thawed = std::move(made);
  Layer& kept = thawed.get_layer("first");
  kept.set_trainable(true);
  EXPECT_THAT(told_by([&] { thawed.train_on_batch(x, y); }), HasSubstr("[train_on_batch] Discrepancy"));
  EXPECT_THAT(first_weight_of(kept), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(first_weight_of(thawed.get_layer(1)), Not(ElementsAre(1, 1)));
  EXPECT_TRUE(kept.trainable());
}

// The discriminator is frozen for the model around it, after its own compile.
TEST(Trainable, OfADiscriminatorInAGan) {
  const auto discriminator =
      std::make_shared<Sequential>(std::vector<LayerPtr>{std::make_shared<Dense>(DenseOptions{.units = 1})});
  discriminator->build_for_shape({-1, 4});
  discriminator->compile({.optimizer = "sgd", .loss = "mse"});
  discriminator->set_trainable(false);
  const auto generator = std::make_shared<Dense>(DenseOptions{.units = 4});
  const Tensor in = Input({3});
  Model gan(in, (*discriminator)((*generator)(in)));
  gan.compile({.optimizer = "sgd", .loss = "mse"});
  for (int round = 0; round < 2; ++round) {
    const auto d = first_weight_of(*discriminator), g = first_weight_of(*generator);
    EXPECT_EQ(told_by([&] { discriminator->train_on_batch(ones({2, 4}), ones({2, 1}) * 9); }), "");
    const auto trained = first_weight_of(*discriminator);
    EXPECT_NE(trained, d);
    EXPECT_EQ(first_weight_of(*generator), g);
    EXPECT_FALSE(discriminator->trainable());
    EXPECT_TRUE(discriminator->trainable_variables().empty());
    EXPECT_EQ(told_by([&] { gan.train_on_batch(ones({2, 3}), ones({2, 1}) * 9); }), "");
    EXPECT_EQ(first_weight_of(*discriminator), trained);
    EXPECT_NE(first_weight_of(*generator), g);
  }
}

struct Alternates : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return a(x) + b(x); }
  StepLogs train_step(const TrainingBatch& batch) override {
    const bool first = num_steps++ % 2 == 0;
    a.set_trainable(first);
    b.set_trainable(!first);
    return Model::train_step(batch);
  }
  Dense a{this, "a", {.units = 1, .use_bias = false}};
  Dense b{this, "b", {.units = 1, .use_bias = false}};
  int num_steps = 0;
};

TEST(Trainable, OfAStepOfOnesOwnIsWhatItSays) {
  const Tensor x = ones({4, 3}), y = ones({4, 1}) * 50;
  Alternates model;
  model.build_for_shape({-1, 3});
  model.compile({.optimizer = "sgd", .loss = "mse", .run_eagerly = true});
  model.optimizer().build(model.trainable_variables());
  for (int round = 0; round < 2; ++round) {
    const auto a = first_weight_of(model.a), b = first_weight_of(model.b);
    EXPECT_EQ(told_by([&] { model.train_on_batch(x, y); }), "");
    const auto trained = first_weight_of(model.a);
    EXPECT_NE(trained, a);
    EXPECT_EQ(first_weight_of(model.b), b);
    EXPECT_EQ(told_by([&] { model.fit(x, y, {.verbose = 0}); }), "");
    EXPECT_EQ(first_weight_of(model.a), trained);
    EXPECT_NE(first_weight_of(model.b), b);
  }
  // Keras's optimizers, too, know only the variables of the first step.
  model.compile({.optimizer = "sgd", .loss = "mse", .run_eagerly = true});
  model.train_on_batch(x, y);
  expect_error([&] { model.train_on_batch(x, y); }, Code::not_found, "call build() with all variables first");
}

// --- what is said of samples ---

TEST(DatasetsOfBatches, TakeNothingThatIsForSamples) {
  Sequential model = small_regressor();
  const Tensor x = ones({4, 2}), y = ones({4, 1});
  const auto batches = data::from_tensor_slices(x, y).batch(2);
  const std::string text = "The `batch_size` argument must not be specified for the given input type";
  expect_error([&] { model.fit(batches, {.batch_size = 16, .verbose = 0}); }, Code::invalid_argument, text);
  expect_error([&] { model.evaluate(batches, {.batch_size = 16, .verbose = 0}); }, Code::invalid_argument, text);
  expect_error([&] { model.predict(batches, {.batch_size = 16, .verbose = 0}); }, Code::invalid_argument, text);
  expect_error([&] { model.fit(batches, {.verbose = 0, .sample_weight = ones({4})}); }, Code::invalid_argument,
               "`sample_weight` argument is not supported when using dataset as input");
  expect_error([&] { model.evaluate(batches, {.verbose = 0, .sample_weight = ones({4})}); }, Code::invalid_argument,
               "`sample_weight` argument is not supported");
  expect_error([&] { model.fit(x, y, {.verbose = 0, .validation_data = batches, .validation_batch_size = 2}); },
               Code::invalid_argument, "The `validation_batch_size` argument");
  model.fit(x, y, {.batch_size = 2, .verbose = 0, .validation_data = batches});
  model.fit(batches, {.verbose = 0, .shuffle = true});
}

TEST(DatasetsOfBatches, ThatAreNoneSaySo) {
  Sequential model({Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto samples = data::from_tensor_slices(ones({4, 2}), ones({4, 1}));
  const std::string text =
      "seems to give single samples, not batches: an element is float32[2], float32[1]. Group them: dataset.batch(32)";
  expect_error([&] { model.fit(samples, {.verbose = 0}); }, Code::invalid_argument, text);
  expect_error([&] { model.evaluate(samples, {.verbose = 0}); }, Code::invalid_argument, text);
  expect_error([&] { model.predict(samples, {.verbose = 0}); }, Code::invalid_argument, text);
  Sequential wrong({Input({5}), Dense({.units = 1})});
  wrong.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(refusal_of([&] { wrong.fit(samples.batch(2), {.verbose = 0}); }), Not(HasSubstr("single samples")));
  expect_error([&] { small_regressor()(ones({2})); }, Code::invalid_argument, "expand_dims(x, 0) makes a batch of it");
}

TEST(DatasetsOfBatches, WithWrongValuesAreNotTakenForSamples) {
  Sequential model({Embedding({.input_dim = 10, .output_dim = 4}), Dense({.units = 3})});
  model.compile({.optimizer = "sgd", .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
  const Tensor ids = zeros({64}, DType::int32), labels = ones({64}, DType::int32) * 7;
  const auto batched = data::from_tensor_slices(ids, labels).batch(32, true);
  EXPECT_THAT(refusal_of([&] { model.fit(batched, {.verbose = 0}); }),
              AllOf(HasSubstr("7"), Not(HasSubstr("single samples"))));
  const auto one_batch = data::from_tensors(std::tuple{ids, labels});  // without a stage that made it one
  EXPECT_THAT(refusal_of([&] { model.evaluate(one_batch, {.verbose = 0}); }),
              AllOf(HasSubstr("7"), Not(HasSubstr("single samples"))));
  // Batches that do not fit are batches.
  Sequential wrong({Input({5}), Dense({.units = 1})});
  wrong.compile({.optimizer = "sgd", .loss = "mse"});
  const auto vectors = data::from_tensor_slices(ones({4}), ones({4, 3})).batch(2, true);
  EXPECT_THAT(refusal_of([&] { wrong.fit(vectors.prefetch(1), {.verbose = 0}); }), Not(HasSubstr("single samples")));
  const auto taken_apart = data::from_tensor_slices(ones({4, 2}), ones({4, 1})).batch(2, true).unbatch();
  EXPECT_THAT(refusal_of([&] { wrong.fit(taken_apart, {.verbose = 0}); }), HasSubstr("single samples"));
}

TEST(Shapes, OfSequences) {
  const auto refused = [](Layer& layer, const char* kind) {
    EXPECT_THAT(refusal_of([&] {
                  layer(Nest(zeros({2, 3})));
                }),
                AllOf(HasSubstr(std::string("[") + kind + "] input of layer"),
                      HasSubstr("expected at least 3 dimensions, [batch, steps, features], found shape [2,3]"),
                      HasSubstr("expand_dims"), Not(HasSubstr("Cell"))));
    EXPECT_FALSE(layer.built());
    layer(Nest(zeros({2, 3, 4})));
    EXPECT_THAT(refusal_of([&] { layer(Nest(zeros({2, 3}))); }), HasSubstr("[batch, steps, features]"));
  };
  LSTM lstm({.units = 2});
  refused(lstm, "LSTM");
  GRU gru({.units = 2});
  refused(gru, "GRU");
  SimpleRNN simple({.units = 2});
  refused(simple, "SimpleRNN");
  LSTM with_states({.units = 2});
  const Nest sequence_and_states = std::vector<Tensor>{zeros({2, 3}), zeros({2, 2}), zeros({2, 2})};
  EXPECT_THAT(refusal_of([&] { with_states(sequence_and_states); }), HasSubstr("[LSTM] input of layer"));
  Bidirectional both({.layer = LSTM({.units = 2})});
  EXPECT_THAT(refusal_of([&] { both(Nest(zeros({2, 3}))); }), HasSubstr("[batch, steps, features]"));
}

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
    EXPECT_THAT(first_weight_of(model.dense), Not(ElementsAre(1, 1)));
    EXPECT_TRUE(model.train_on_batch(ones({4, 2}), ones({4, 1})).empty());
    EXPECT_TRUE(model.evaluate(ones({4, 2}), ones({4, 1}), {.verbose = 0}).empty());
  }
}

// --- objects that were moved from ---

TEST(MovedFrom, SaysSo) {
  Sequential model = small_regressor();
  const Sequential taken = std::move(model);
  const auto refused = [](const auto& use, const char* kind) {
    EXPECT_THAT(refusal_of(use), HasSubstr(std::string("this ") + kind + " was moved from"));
  };
  const Tensor x = ones({4, 2}), y = ones({4, 1});
  // NOLINTBEGIN(bugprone-use-after-move): that is what this is about
  refused([&] { model(x); }, "Sequential");
  refused([&] { model.fit(x, y, {.verbose = 0}); }, "Sequential");
  refused([&] { model.predict(x, {.verbose = 0}); }, "Sequential");
  refused([&] { model.compile({.loss = "mse"}); }, "Sequential");
  refused([&] { model.summary(); }, "Sequential");
  refused([&] { model.add(Dense({.units = 1})); }, "Sequential");
  refused([&] { model.to_json(); }, "Sequential");
  refused([&] { model.weights(); }, "Sequential");
  refused([&] { model.get_weights(); }, "Sequential");
  refused([&] { model.trainable_variables(); }, "Sequential");
  refused([&] { model.non_trainable_weights(); }, "Sequential");
  refused([&] { model.losses(); }, "Sequential");
  refused([&] { model.set_trainable(false); }, "Sequential");
  model = small_regressor();
  model.fit(x, y, {.verbose = 0});

  Dense dense({.units = 1});
  dense(x);
  Dense elsewhere = std::move(dense);
  refused([&] { dense(x); }, "Dense");
  refused([&] { dense.set_weights({}); }, "Dense");
  refused([&] { dense.get_config(); }, "Dense");
  refused([&] { dense.get_weights(); }, "Dense");
  refused([&] { dense.set_trainable(false); }, "Dense");
  EXPECT_EQ(elsewhere(x).shape(), (Shape{4, 1}));
  std::swap(dense, elsewhere);
  EXPECT_EQ(dense(x).shape(), (Shape{4, 1}));

  // Optimizers are handles: what was moved from is one more.
  mixed_precision::LossScaleOptimizer scaled("sgd");
  const mixed_precision::LossScaleOptimizer other = std::move(scaled);
  scaled.set_learning_rate(0.5);
  EXPECT_EQ(other.inner_optimizer()->learning_rate().value().item<float>(), 0.5f);
  // NOLINTEND(bugprone-use-after-move)
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
  Sequential model = small_regressor();
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
