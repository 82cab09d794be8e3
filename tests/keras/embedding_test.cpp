#include "runnel/keras/layers/embedding.h"

#include "runnel/keras/layers/recurrent.h"
#include "runnel/runnel.h"
#include "tests/keras/recurrent_reference.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;

TEST(Embedding, TakesRowsOfItsWeight) {
  clear_session();
  Embedding embedding({.input_dim = 4, .output_dim = 2});
  embedding.build_from_shapes(PartialShape{kUnknownDim, kUnknownDim});
  EXPECT_EQ(embedding.weights()[0].name(), "embedding/embeddings");
  embedding.set_weights({Tensor{{0.f, 1.f}, {10.f, 11.f}, {20.f, 21.f}, {30.f, 31.f}}});
  const std::vector<double> expected{30, 31, 10, 11, 10, 11, 0, 1};
  expect_close(embedding(Tensor{{3, 1}, {1, 0}}), expected, {2, 2, 2}, 0);
  expect_close(embedding(cast(Tensor{{3, 1}, {1, 0}}, int64)), expected, {2, 2, 2}, 0);
  expect_close(embedding(Tensor{{3.f, 1.f}, {1.f, 0.f}}), expected, {2, 2, 2}, 0);  // numbers of another kind are cast
}

TEST(Embedding, InitialValuesAreSmall) {
  Embedding embedding({.input_dim = 100, .output_dim = 8});
  embedding(Tensor{0});
  double largest = 0;
  for (const double v : test::values_of(embedding.embeddings.value())) largest = std::max(largest, std::abs(v));
  EXPECT_GT(largest, 0.04);
  EXPECT_LE(largest, 0.05);
}

TEST(Embedding, TheGradientIsSparse) {
  Embedding embedding({.input_dim = 5, .output_dim = 2});
  const Tensor ids{{1, 3}, {3, 0}};
  const auto gradient_of = [&](const auto& call) {
    GradientTape tape;
    const Tensor loss = reduce_sum(call(ids) * Tensor{{{1.f, 2.f}, {3.f, 4.f}}, {{5.f, 6.f}, {7.f, 8.f}}});
    return tape.gradient(loss, embedding.embeddings);
  };
  embedding(ids);
  const Gradient g = gradient_of([&](const Tensor& x) { return embedding(x); });
  ASSERT_TRUE(g.is_slices());
  expect_close(g.slices().values, {1, 2, 3, 4, 5, 6, 7, 8}, {4, 2}, 0);
  expect_close(g.value(), {7, 8, 1, 2, 0, 0, 8, 10, 0, 0}, {5, 2}, 0);
  const Gradient traced = gradient_of(function([&](const Tensor& x) { return embedding(x); }));
  expect_close(traced.value(), {7, 8, 1, 2, 0, 0, 8, 10, 0, 0}, {5, 2}, 0);
}

struct EmbeddedMemory : Layer {
  Embedding embedding{this, "embedding", {.input_dim = 5, .output_dim = 3, .mask_zero = true, .dtype = "float64"}};
  LSTM lstm{this, "lstm", {.units = 2, .dtype = "float64"}};
  Tensor call(const Tensor& ids, const CallArgs&) override { return lstm(embedding(ids)); }
};

TEST(Embedding, ZeroIsMasked) {
  EmbeddedMemory model;
  const Tensor ids{{1, 2, 0, 0}, {4, 3, 2, 0}};
  model(ids);
  set_random_weights(model.embedding, {2, 4});
  set_random_weights(model.lstm, {2, 4, 3});
  const Tensor mask = model.embedding.compute_mask(Nest(ids), {});
  EXPECT_EQ(mask.to_vector<bool>(), (std::vector<bool>{true, true, false, false, true, true, true, false}));
  const std::vector<Tensor> zero(2, zeros({2, 2}, float64));
  const ReferenceResult expected =
      run_reference(reference_lstm(model.lstm.get_weights()), model.embedding(ids), zero, mask);
  expect_close(model(ids), expected.last, {2, 2}, 1e-10);
  expect_close(function([&](const Tensor& x) { return model(x); })(ids), expected.last, {2, 2}, 1e-10);

  Embedding plain({.input_dim = 5, .output_dim = 3});
  plain(ids);
  EXPECT_FALSE(plain.compute_mask(Nest(ids), {}).defined());
}

TEST(Embedding, ErrorsNameTheLayer) {
  Embedding embedding({.input_dim = 4, .output_dim = 2, .name = "words"});
  expect_error([&] { embedding(Tensor{4}); }, Code::invalid_argument, "layer 'words' (Embedding)");
  expect_error([&] { embedding(Tensor{-1}); }, Code::invalid_argument, "layer 'words' (Embedding)");
  const auto f = function([&](const Tensor& ids) { return embedding(ids); });
  expect_error([&] { f(Tensor{4}); }, Code::invalid_argument, "words");
  Embedding fixed({.input_dim = 4, .output_dim = 2, .input_length = 3});
  expect_error([&] { fixed(Tensor{{1, 2}}); }, Code::invalid_argument, "size 3 at axis 1");
  expect_error([] { Embedding({.output_dim = 2})(Tensor{1}); }, Code::invalid_argument, "must be positive");
}

TEST(Embedding, ConfigurationsMakeTheSameLayer) {
  for (const std::optional<int64_t> length : {std::optional<int64_t>(), std::optional<int64_t>(7)}) {
    const Embedding embedding({.input_dim = 4, .output_dim = 2, .mask_zero = true, .input_length = length});
    const LayerPtr copy = layer_from_config(layer_to_config(embedding));
    EXPECT_EQ(copy->get_config(), embedding.get_config());
    EXPECT_EQ(embedding.get_config()["input_length"].is_null(), !length);
  }
}

}  // namespace
}  // namespace runnel::keras
