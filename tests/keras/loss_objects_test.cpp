#include <gtest/gtest.h>

#include <cmath>

#include "runnel/function/function.h"
#include "runnel/keras/losses.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;

const Tensor kTruth{{0.f, 1.f}, {2.f, 0.f}, {1.f, 1.f}};
const Tensor kGuess{{1.f, 1.f}, {0.f, 0.f}, {1.f, 4.f}};
const std::vector<double> kSquares = {0.5, 2, 4.5};  // mean squared differences of the rows

TEST(LossObjects, Reductions) {
  expect_close(losses::MeanSquaredError()(kTruth, kGuess), {7.0 / 3}, {}, 1e-6);
  expect_close(losses::MeanSquaredError({.reduction = "sum_over_batch_size"})(kTruth, kGuess), {7.0 / 3}, {}, 1e-6);
  expect_close(losses::MeanSquaredError({.reduction = "sum"})(kTruth, kGuess), {7}, {}, 1e-6);
  expect_close(losses::MeanSquaredError({.reduction = "none"})(kTruth, kGuess), kSquares, {3}, 1e-6);
  expect_error([] { losses::MeanSquaredError loss({.reduction = "mean"}); }, Code::invalid_argument,
               "unknown reduction 'mean'");
}

TEST(LossObjects, WeightsDivideByTheNumberOfSamples) {
  losses::MeanSquaredError loss;
  const Tensor weight{1.f, 0.f, 3.f};
  expect_close(loss(kTruth, kGuess, weight), {(0.5 + 3 * 4.5) / 3}, {}, 1e-6);
  expect_close(loss(kTruth, kGuess, expand_dims(weight, 1)), {(0.5 + 3 * 4.5) / 3}, {}, 1e-6);
  expect_close(loss(kTruth, kGuess, Tensor{1, 0, 3}), {(0.5 + 3 * 4.5) / 3}, {}, 1e-6);
  expect_close(loss(kTruth, kGuess, Tensor(2.f)), {14.0 / 3}, {}, 1e-6);
  expect_close(losses::MeanSquaredError({.reduction = "none"})(kTruth, kGuess, weight), {0.5, 0, 13.5}, {3}, 1e-6);
  expect_error(
      [&] {
        loss(kTruth, kGuess, Tensor{1.f, 2.f});
      },
      Code::invalid_argument, "[mean_squared_error] sample_weight of shape [2] does not fit values of shape [3]");
  // One weight per step of a sequence, or per sequence.
  losses::MeanSquaredError sequence({.reduction = "sum"});
  const Tensor steps = reshape(kTruth, {1, 3, 2});
  const Tensor guessed = reshape(kGuess, {1, 3, 2});
  expect_close(sequence(steps, guessed, reshape(weight, {1, 3})), {14}, {}, 1e-6);
  expect_close(sequence(steps, guessed, Tensor{2.f}), {14}, {}, 1e-6);
}

TEST(LossObjects, MaskedLossesAreNotCounted) {
  const Tensor mask{true, false, true};
  expect_close(losses::MeanSquaredError()(kTruth, kGuess, {}, mask), {2.5}, {}, 1e-6);
  expect_close(losses::MeanSquaredError()(kTruth, kGuess, Tensor{2.f, 9.f, 4.f}, mask), {9.5}, {}, 1e-6);
  expect_close(losses::MeanSquaredError({.reduction = "sum"})(kTruth, kGuess, {}, mask), {5}, {}, 1e-6);
}

TEST(LossObjects, RanksAreMatched) {
  losses::MeanAbsoluteError loss({.reduction = "none"});
  expect_close(loss(Tensor{1.f, 2.f}, Tensor{{2.f}, {4.f}}), {1.5}, {}, 1e-6);       // predictions are squeezed
  expect_close(loss(Tensor{{{1.f}, {2.f}}}, Tensor{{2.f, 4.f}}), {1.5}, {1}, 1e-6);  // labels are
  const losses::TrainingValues v = losses::match_dtype_and_rank(Tensor{1.f, 2.f}, Tensor{{2.f}, {4.f}}, Tensor{1, 3});
  EXPECT_EQ(v.y_true.shape(), Shape({2, 1}));
  expect_close(loss(v.y_true, v.y_pred, v.sample_weight), {1, 6}, {2}, 1e-6);
}

TEST(LossObjects, AnEmptyBatchIsZero) {
  losses::MeanSquaredError loss;
  EXPECT_EQ(loss(zeros({0, 2}), zeros({0, 2})).item<float>(), 0);
  auto traced = function([&](const Tensor& t, const Tensor& p) { return loss(t, p); },
                         {.input_signature = {{{-1, 2}, DType::float32}, {{-1, 2}, DType::float32}}});
  EXPECT_EQ(traced(zeros({0, 2}), zeros({0, 2})).item<float>(), 0);
  expect_close(traced(kTruth, kGuess), {7.0 / 3}, {}, 1e-6);
}

TEST(LossObjects, SettingsReachTheFunction) {
  const Tensor logits{{1.f, -2.f}};
  const double right = std::log(1 + std::exp(-3.0));
  expect_close(losses::SparseCategoricalCrossentropy({.from_logits = true})(Tensor{0}, logits), {right}, {}, 1e-6);
  expect_close(losses::CategoricalCrossentropy({.from_logits = true, .label_smoothing = 1})(Tensor{{1.f, 0.f}}, logits),
               {right + 1.5}, {}, 1e-6);
  expect_close(losses::BinaryCrossentropy({.from_logits = true})(Tensor{{1.f, 0.f}}, logits),
               {(std::log(1 + std::exp(-1.0)) + std::log(1 + std::exp(-2.0))) / 2}, {}, 1e-6);
  expect_close(losses::Huber({.delta = 0.5})(Tensor{{0.f}}, Tensor{{2.f}}), {0.5 * (2 - 0.25)}, {}, 1e-6);
  expect_close(losses::CosineSimilarity({.axis = 0})(Tensor{{1.f}, {0.f}}, Tensor{{1.f}, {1.f}}), {-std::sqrt(0.5)}, {},
               1e-6);
}

TEST(LossObjects, Configurations) {
  losses::CategoricalCrossentropy loss({.from_logits = true, .label_smoothing = 0.25, .reduction = "sum"});
  EXPECT_EQ(losses::serialize(loss).to_json(),
            R"({"class_name":"CategoricalCrossentropy","config":{"reduction":"sum","name":"categorical_crossentropy",)"
            R"("from_logits":true,"label_smoothing":0.25,"axis":-1}})");
  const LossPtr copy = losses::deserialize(losses::serialize(loss));
  EXPECT_EQ(copy->get_config(), loss.get_config());
  EXPECT_EQ(losses::Huber().name(), "huber_loss");
  EXPECT_EQ(losses::KLDivergence({.name = "kl"}).name(), "kl");
}

struct QuarticLoss : Loss {
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return reduce_mean(pow(y_pred - y_true, 4), -1); }
};

TEST(LossArguments, NamesObjectsAndFunctions) {
  const auto value = [](const LossArg& loss) { return (*loss.get())(kTruth, kGuess).item<float>(); };
  for (const char* name : {"mse", "MSE", "mean_squared_error", "MeanSquaredError"}) {
    EXPECT_FLOAT_EQ(value(name), 7.f / 3) << name;
  }
  EXPECT_FLOAT_EQ(value(losses::MeanSquaredError({.reduction = "sum"})), 7);
  EXPECT_FLOAT_EQ(value(std::make_shared<losses::MeanAbsoluteError>()), 1);
  EXPECT_FLOAT_EQ(value(QuarticLoss()), (0.5f + 8 + 40.5f) / 3);
  EXPECT_FLOAT_EQ(value(losses::mean_absolute_error), 1);
  EXPECT_FLOAT_EQ(value([](const Tensor&, const Tensor& p) { return reduce_sum(p, -1); }), 7.f / 3);
  EXPECT_FALSE(LossArg());
  EXPECT_EQ(LossArg("sparse_categorical_crossentropy").get()->name(), "sparse_categorical_crossentropy");
  expect_error([] { LossArg loss("mean_square"); }, Code::invalid_argument,
               "unknown loss 'mean_square'; there are sparse_");
}

}  // namespace
}  // namespace runnel::keras
