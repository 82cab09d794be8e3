// Recurrent layers in models: sequences that are long or of unknown length become loops, whose shapes must be known to
// the layers after them.
#include <gtest/gtest.h>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

constexpr int64_t kLong = 100;
constexpr int64_t kInputs = 3;

LayerArg recurrent_layer(const std::string& kind, bool sequences) {
  if (kind == "LSTM") return LSTM({.units = 4, .return_sequences = sequences});
  if (kind == "GRU") return GRU({.units = 4, .return_sequences = sequences});
  if (kind == "SimpleRNN") return SimpleRNN({.units = 4, .return_sequences = sequences});
  return Bidirectional({.layer = LSTM({.units = 2, .return_sequences = sequences})});
}

class RecurrentModels : public testing::TestWithParam<std::string> {
 protected:
  // Trains and predicts: what follows the layer was built for what it gives.
  static void expect_trains(Model& model, const Shape& output) {
    const Tensor x = random::stateless_normal({6, kLong, kInputs}, {1, 2});
    const Tensor y = random::stateless_normal(Shape{6, output[1]}, {3, 4});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    const auto history = model.fit(x, y, {.batch_size = 3, .epochs = 2, .verbose = 0});
    EXPECT_EQ(history.history.at("loss").size(), 2u);
    EXPECT_EQ(model.predict(x, {.verbose = 0}).shape(), output);
    // The traced loop computes what the layer computes step by step.
    expect_same(model, x);
  }
  static void expect_same(Model& model, const Tensor& x) {
    const Tensor eager = model(x);
    auto traced = function([&](const Tensor& t) { return model(t); });
    test::expect_close(traced(x), test::values_of(eager), eager.shape(), 1e-5);
  }
};

TEST_P(RecurrentModels, LongSequencesInSequential) {
  Sequential model({Input({kLong, kInputs}), recurrent_layer(GetParam(), false), Dense({.units = 2})});
  expect_trains(model, {6, 2});
}

TEST_P(RecurrentModels, UnknownLengthInSequential) {
  Sequential model({Input({kUnknownDim, kInputs}), recurrent_layer(GetParam(), true),
                    recurrent_layer(GetParam(), false), Dense({.units = 2})});
  expect_trains(model, {6, 2});
}

TEST_P(RecurrentModels, SequencesKeepTheirLength) {
  Sequential model({Input({kLong, kInputs}), recurrent_layer(GetParam(), true), Flatten(), Dense({.units = 2})});
  expect_trains(model, {6, 2});
}

TEST_P(RecurrentModels, BuiltByTheFirstBatch) {
  Sequential model({recurrent_layer(GetParam(), false), Dense({.units = 2})});
  expect_trains(model, {6, 2});
}

TEST_P(RecurrentModels, Functional) {
  for (const int64_t steps : {kLong, kUnknownDim}) {
    const Tensor input = Input({steps, kInputs});
    const LayerPtr layer = recurrent_layer(GetParam(), false).layer();
    const Tensor output = Dense({.units = 2})((*layer)(input));
    EXPECT_EQ(output.partial_shape().str(), "[?,2]");
    Model model(input, output);
    expect_trains(model, {6, 2});
  }
}

TEST_P(RecurrentModels, MaskedWordsOfUnknownNumber) {
  Sequential model({Input({kUnknownDim}), Embedding({.input_dim = 10, .output_dim = 3, .mask_zero = true}),
                    recurrent_layer(GetParam(), false), Dense({.units = 2})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor words = random::stateless_uniform({6, kLong}, {1, 2}, 0, 10, int32);
  model.fit(words, zeros({6, 2}), {.batch_size = 3, .verbose = 0});
  expect_same(model, words);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecurrentModels, testing::Values("LSTM", "GRU", "SimpleRNN", "Bidirectional"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace runnel::keras
