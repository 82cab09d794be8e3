// What a user gets wrong, and what is said about it.
#include <gtest/gtest.h>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_error;

Sequential three_classes() {
  Sequential model({Dense({.units = 3, .activation = "softmax"})});
  model.compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
  return model;
}

struct Orphan : Model {
  Dense dense{nullptr, "dense", {.units = 1}};
};

TEST(Mistakes, MembersOfNothing) {
  expect_error([] { Orphan model; }, Code::invalid_argument, "Write {this, \"dense\"}");
}

TEST(Mistakes, BinaryCrossentropyDoesNotBroadcast) {
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

TEST(Mistakes, ClassesWithoutAWeight) {
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

TEST(Mistakes, LayersWithSeveralResultsAsOneTensor) {
  LSTM lstm({.units = 2, .return_state = true});
  expect_error(
      [&] {
        const Tensor y = lstm(ones({1, 3, 2}));
      },
      Code::invalid_argument, "gives a list of 3, not one tensor. Call it with a Nest");
}

TEST(Mistakes, TrainingFrozenLayers) {
  Sequential frozen = three_classes();
  frozen(ones({1, 2}));
  frozen.set_trainable(false);
  expect_error(
      [&] {
        frozen.fit(ones({4, 2}), Tensor{0, 1, 2, 0}, {.verbose = 0});
      },
      Code::failed_precondition, "All its layers are frozen");
}

}  // namespace
}  // namespace runnel::keras
