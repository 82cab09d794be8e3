// What goes wrong when one begins: layers that end or are made too late, calls without end, settings of samples for
// datasets, objects that were moved from.
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
#include "tests/support/told.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::refusal_of;
using test::told_by;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

}  // namespace
}  // namespace runnel::keras
