#include <cmath>

#include "runnel/keras/layers/attention.h"

#include "runnel/keras/layers/embedding.h"
#include "runnel/keras/model.h"
#include "runnel/runnel.h"
#include "tests/keras/recurrent_reference.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

// x[rows, dim] . kernel[dim, columns] + bias[columns]
std::vector<double> attention_product(const std::vector<double>& x, const std::vector<double>& kernel,
                                      const std::vector<double>& bias) {
  const size_t columns = bias.size(), dim = kernel.size() / columns, rows = x.size() / dim;
  std::vector<double> y;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      double sum = bias[c];
      for (size_t d = 0; d < dim; ++d) sum += x[r * dim + d] * kernel[d * columns + c];
      y.push_back(sum);
    }
  }
  return y;
}

struct NaiveAttention {
  int64_t heads, key_dim, value_dim;
  std::function<bool(int64_t b, int64_t t, int64_t s)> seen = [](int64_t, int64_t, int64_t) { return true; };

  // w: kernel and bias of query, key, value and output, in the order of the layer's weights.
  std::vector<double> operator()(const std::vector<Tensor>& w, const Tensor& query, const Tensor& value,
                                 const Tensor& key) const {
    const auto project = [&](const Tensor& x, size_t at) {
      return attention_product(values_of(x), values_of(w[at]), values_of(w[at + 1]));
    };
    const std::vector<double> q = project(query, 0), k = project(key, 2), v = project(value, 4);
    const int64_t batch = query.dim(0), queries = query.dim(1), keys = key.dim(1);
    std::vector<double> mixed;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t t = 0; t < queries; ++t) {
        for (int64_t h = 0; h < heads; ++h) {
          std::vector<double> score;
          double total = 0;
          for (int64_t s = 0; s < keys; ++s) {
            double dot = 0;
            for (int64_t d = 0; d < key_dim; ++d) {
              dot += q[static_cast<size_t>(((b * queries + t) * heads + h) * key_dim + d)] *
                     k[static_cast<size_t>(((b * keys + s) * heads + h) * key_dim + d)];
            }
            score.push_back(seen(b, t, s) ? std::exp(dot / std::sqrt(static_cast<double>(key_dim))) : 0);
            total += score.back();
          }
          for (int64_t d = 0; d < value_dim; ++d) {
            double sum = 0;
            for (int64_t s = 0; s < keys; ++s) {
              sum += score[static_cast<size_t>(s)] / total *
                     v[static_cast<size_t>(((b * keys + s) * heads + h) * value_dim + d)];
            }
            mixed.push_back(sum);
          }
        }
      }
    }
    return attention_product(mixed, values_of(w[6]), values_of(w[7]));
  }
};

void set_random_attention(MultiHeadAttention& layer, const std::vector<PartialShape>& inputs) {
  std::vector<NestOf<PartialShape>> shapes(inputs.begin(), inputs.end());
  layer.build_from_shapes(NestOf<PartialShape>::tuple(shapes));
  std::vector<Tensor> values;
  for (const Variable& w : layer.weights()) {
    values.push_back(random_tensor(w.shape(), w.dtype(), 50 + static_cast<uint32_t>(values.size())));
  }
  layer.set_weights(values);
}

TEST(MultiHeadAttention, IsTheNaiveSum) {
  MultiHeadAttention layer({.num_heads = 2, .key_dim = 3, .value_dim = 4, .output_shape = 5, .dtype = "float64"});
  const Tensor query = random_tensor({2, 3, 6}, float64, 1), value = random_tensor({2, 4, 7}, float64, 2),
               key = random_tensor({2, 4, 8}, float64, 3);
  set_random_attention(layer, {{2, 3, 6}, {2, 4, 7}, {2, 4, 8}});
  const NaiveAttention naive{2, 3, 4};
  const Nest inputs = Nest::tuple({query, value, key});
  expect_close(layer(inputs).leaf(), naive(layer.get_weights(), query, value, key), {2, 3, 5}, 1e-10);
  const auto f = function([&](const Tensor& q, const Tensor& v, const Tensor& k) {
    return layer(Nest::tuple({q, v, k})).leaf();
  });
  expect_close(f(query, value, key), naive(layer.get_weights(), query, value, key), {2, 3, 5}, 1e-10);
  expect_weight_gradients(
      layer, [&] { return layer(inputs).leaf(); }, 1e-5);
}

TEST(MultiHeadAttention, MasksHidePositions) {
  MultiHeadAttention layer({.num_heads = 2, .key_dim = 3, .dtype = "float64"});
  const Tensor x = random_tensor({2, 4, 6}, float64, 1);
  set_random_attention(layer, {{2, 4, 6}, {2, 4, 6}});
  const Nest inputs = Nest::list({x, x});
  NaiveAttention naive{2, 3, 3};

  CallArgs causal;
  causal.use_causal_mask = true;
  naive.seen = [](int64_t, int64_t t, int64_t s) { return s <= t; };
  expect_close(layer(inputs, causal).leaf(), naive(layer.get_weights(), x, x, x), {2, 4, 6}, 1e-10);

  CallArgs both = causal;
  both.attention_mask = tile(Tensor{{{true, true, false, true}}}, {2, 4, 1});
  naive.seen = [](int64_t, int64_t t, int64_t s) { return s <= t && s != 2; };
  expect_close(layer(inputs, both).leaf(), naive(layer.get_weights(), x, x, x), {2, 4, 6}, 1e-10);

  CallArgs padded;
  padded.mask = Tensor{{true, true, true, false}, {true, false, false, false}};
  naive.seen = [](int64_t b, int64_t, int64_t s) { return b == 0 ? s < 3 : s < 1; };
  expect_close(layer(inputs, padded).leaf(), naive(layer.get_weights(), x, x, x), {2, 4, 6}, 1e-10);
}

// Attention over rows and columns of an image at once is attention over the list of its pixels.
TEST(MultiHeadAttention, SeveralAxes) {
  const Tensor query = random_tensor({2, 2, 3, 5}, float64, 1), value = random_tensor({2, 2, 4, 6}, float64, 2);
  for (const bool named : {false, true}) {
    MultiHeadAttention layer({.num_heads = 2,
                              .key_dim = 3,
                              .attention_axes = named ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{},
                              .dtype = "float64"});
    set_random_attention(layer, {{2, 2, 3, 5}, {2, 2, 4, 6}});
    NaiveAttention naive{2, 3, 3};
    const Tensor flat_query = reshape(query, {2, 6, 5}), flat_value = reshape(value, {2, 8, 6});
    const Nest inputs = Nest::tuple({query, value});
    expect_close(layer(inputs).leaf(), naive(layer.get_weights(), flat_query, flat_value, flat_value), {2, 2, 3, 5},
                 1e-10);
    EXPECT_EQ(layer.call_with_scores(inputs, {}).second.shape(), (Shape{2, 2, 2, 3, 2, 4}));
    CallArgs masked;
    const Tensor seen = cast(range(2 * 3 * 2 * 4) % 3 > 0, bool_);
    masked.attention_mask = broadcast_to(reshape(seen, {1, 2, 3, 2, 4}), {2, 2, 3, 2, 4});
    naive.seen = [](int64_t, int64_t t, int64_t s) { return (t * 8 + s) % 3 > 0; };
    expect_close(layer(inputs, masked).leaf(), naive(layer.get_weights(), flat_query, flat_value, flat_value),
                 {2, 2, 3, 5}, 1e-10);
    CallArgs causal;
    causal.use_causal_mask = true;
    expect_error([&] { layer(inputs, causal); }, Code::invalid_argument, "attention_mask");
    EXPECT_EQ(layer_from_config(layer_to_config(layer))->get_config(), layer.get_config());
  }
}

// Attention along one axis leaves the others apart, as batches are.
TEST(MultiHeadAttention, OneOfSeveralAxes) {
  const Tensor x = random_tensor({2, 3, 4, 5}, float64, 1);
  for (const int64_t axis : {1, 2}) {
    MultiHeadAttention layer({.num_heads = 2, .key_dim = 3, .attention_axes = {axis}, .dtype = "float64"});
    set_random_attention(layer, {{2, 3, 4, 5}, {2, 3, 4, 5}});
    const NaiveAttention naive{2, 3, 3};
    const Tensor y = layer(Nest::tuple({x, x})).leaf();
    const Tensor rows = axis == 2 ? x : transpose(x, {0, 2, 1, 3});
    const int64_t batches = axis == 2 ? 6 : 8, steps = axis == 2 ? 4 : 3;
    const Tensor flat = reshape(rows, {batches, steps, 5});
    const Tensor got = reshape(axis == 2 ? y : transpose(y, {0, 2, 1, 3}), {batches, steps, 5});
    expect_close(got, naive(layer.get_weights(), flat, flat, flat), {batches, steps, 5}, 1e-10);
  }
  const Nest inputs = Nest::tuple({x, x});
  for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{3}, {0}, {1, 1}}) {
    expect_error(
        [&] {
          MultiHeadAttention layer({.num_heads = 1, .key_dim = 2, .attention_axes = wrong});
          layer(inputs);
        },
        Code::invalid_argument, "attention_axes");
  }
}

TEST(MultiHeadAttention, MasksComeWithTheInputs) {
  const Tensor in = Input({4}, {.name = "ids", .dtype = int32});
  const Tensor x = Embedding({.input_dim = 5, .output_dim = 6, .mask_zero = true, .name = "embed"})(in);
  const auto attention = make<MultiHeadAttention>({.num_heads = 2, .key_dim = 3});
  const Model model(in, attention(std::vector<Tensor>{x, x}));
  const Tensor y = model.get_layer("embed")(Tensor{{1, 2, 3, 0}});
  // The padded position is hidden, whatever its values are: the others are as without it.
  Model& whole = const_cast<Model&>(model);
  const std::vector<double> padded = values_of(whole(Tensor{{1, 2, 3, 0}}));
  const Tensor shorter = y(all, slice(0, 3));
  const std::vector<double> alone = values_of((*attention)(Nest::tuple({shorter, shorter})).leaf());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(padded[i], alone[i], 1e-5);
}

TEST(MultiHeadAttention, WeightsAreThoseOfKeras) {
  clear_session();
  MultiHeadAttention layer({.num_heads = 2, .key_dim = 3});
  const Tensor x = random_tensor({2, 4, 6});
  const auto [y, scores] = [&] {
    layer(Nest::tuple({x, x}));
    return layer.call_with_scores(Nest::tuple({x, x}), {});
  }();
  EXPECT_EQ(y.shape(), (Shape{2, 4, 6}));
  expect_close(reduce_sum(scores, -1), std::vector<double>(16, 1.0), {2, 2, 4}, 1e-5);
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"multi_head_attention/query/kernel", {6, 2, 3}},
      {"multi_head_attention/query/bias", {2, 3}},
      {"multi_head_attention/key/kernel", {6, 2, 3}},
      {"multi_head_attention/key/bias", {2, 3}},
      {"multi_head_attention/value/kernel", {6, 2, 3}},
      {"multi_head_attention/value/bias", {2, 3}},
      {"multi_head_attention/attention_output/kernel", {2, 3, 6}},
      {"multi_head_attention/attention_output/bias", {6}}};
  const std::vector<Variable> weights = layer.weights();
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(weights[i].name(), expected[i].first);
    EXPECT_EQ(weights[i].shape(), expected[i].second);
  }
}

TEST(MultiHeadAttention, DropoutOfScoresInTrainingOnly) {
  random::set_seed(1);
  MultiHeadAttention layer({.num_heads = 2, .key_dim = 3, .dropout = 0.5});
  const Tensor x = random_tensor({2, 4, 6});
  const Nest inputs = Nest::tuple({x, x});
  const std::vector<double> plain = values_of(layer(inputs).leaf());
  EXPECT_EQ(values_of(layer(inputs).leaf()), plain);
  CallArgs training;
  training.training = true;
  EXPECT_NE(values_of(layer(inputs, training).leaf()), plain);
}

TEST(MultiHeadAttention, Errors) {
  MultiHeadAttention layer({.num_heads = 2, .key_dim = 3});
  expect_error([&] { layer(zeros({2, 4, 6})); }, Code::invalid_argument, "(query, value)");
  expect_error(
      [&] {
        MultiHeadAttention({.num_heads = 2})(Nest::tuple({zeros({1, 1, 2}), zeros({1, 1, 2})}));
      },
      Code::invalid_argument, "must be positive");
  const LayerPtr copy = layer_from_config(layer_to_config(layer));
  EXPECT_EQ(copy->get_config(), layer.get_config());
}

TEST(EinsumDense, SizesComeFromInputAndOutputShape) {
  EinsumDense dense(
      {.equation = "abc,cd->abd", .output_shape = {kUnknownDim, 3}, .activation = "relu", .bias_axes = "d"});
  const Tensor x = random_tensor({2, 4, 5});
  set_random_weights(dense, {2, 4, 5});
  EXPECT_EQ(dense.kernel.shape(), (Shape{5, 3}));
  std::vector<double> expected =
      attention_product(values_of(x), values_of(dense.kernel.value()), values_of(dense.bias.value()));
  for (double& v : expected) v = std::max(v, 0.0);
  expect_close(dense(x), expected, {2, 4, 3}, 1e-5);

  EinsumDense rows({.equation = "ab,bc->ac", .output_shape = {3}});
  rows(zeros({2, 4}));
  EXPECT_EQ(rows.weights().size(), 1U);
  EinsumDense wide({.equation = "abc,cde->abde", .output_shape = {kUnknownDim, 2, 3}, .bias_axes = "be"});
  wide(zeros({2, 4, 5}));
  EXPECT_EQ(wide.bias.shape(), (Shape{4, 1, 3}));
  expect_error(
      [] {
        EinsumDense({.equation = "ab->ac", .output_shape = {3}})(zeros({2, 4}));
      },
      Code::invalid_argument, "must be like");
  expect_error(
      [] {
        EinsumDense({.equation = "ab,bc->ac", .output_shape = {kUnknownDim}})(zeros({2, 4}));
      },
      Code::invalid_argument, "the size of 'c'");
}

}  // namespace
}  // namespace runnel::keras
