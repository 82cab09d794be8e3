// What is trained: that which was trainable when the model was compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/told.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::told_by;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

}  // namespace
}  // namespace runnel::keras
