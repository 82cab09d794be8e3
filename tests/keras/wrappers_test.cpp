#include "runnel/keras/layers/wrappers.h"

#include "runnel/keras/layers/dense.h"
#include "runnel/keras/layers/embedding.h"
#include "runnel/keras/layers/recurrent.h"
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

// Both directions by the reference, the second one's steps in the order of time.
struct BothDirections {
  ReferenceResult forward, backward;
  BothDirections(const Bidirectional& layer, const Tensor& x, const Tensor& mask) {
    const std::vector<Tensor> zero(2, zeros({x.dim(0), 3}, float64));
    forward = run_reference(reference_lstm(layer.forward_layer->get_weights()), x, zero, mask);
    backward = run_reference(reference_lstm(layer.backward_layer->get_weights()), x, zero, mask, true);
    const std::vector<double> reversed = backward.sequence;
    const auto time = static_cast<size_t>(x.dim(1));
    for (size_t b = 0; b < static_cast<size_t>(x.dim(0)); ++b) {
      for (size_t t = 0; t < time; ++t) {
        for (size_t k = 0; k < 3; ++k) {
          backward.sequence[(b * time + t) * 3 + k] = reversed[(b * time + time - 1 - t) * 3 + k];
        }
      }
    }
  }
};

TEST(Bidirectional, MergesBothDirections) {
  const Tensor x = random_tensor({2, 4, 5}, float64, 2);
  const Tensor mask{{true, true, false, true}, {false, true, true, false}};
  const CallArgs args{.training = {}, .mask = mask, .initial_state = {}, .attention_mask = {}};
  const std::vector<std::pair<std::string, std::function<double(double, double)>>> modes = {
      {"sum", [](double a, double b) { return a + b; }},
      {"mul", [](double a, double b) { return a * b; }},
      {"ave", [](double a, double b) { return (a + b) / 2; }}};
  for (const auto& [mode, merge] : modes) {
    SCOPED_TRACE(mode);
    Bidirectional both({.layer = LSTM({.units = 3, .return_sequences = true, .dtype = "float64"}),
                        .merge_mode = mode,
                        .dtype = "float64"});
    set_random_weights(both, {2, 4, 5});
    const BothDirections expected(both, x, mask);
    std::vector<double> merged;
    for (size_t i = 0; i < expected.forward.sequence.size(); ++i) {
      merged.push_back(merge(expected.forward.sequence[i], expected.backward.sequence[i]));
    }
    expect_close(both(x, args), merged, {2, 4, 3}, 1e-10);
    expect_close(function([&](const Tensor& in) { return both(in, args); })(x), merged, {2, 4, 3}, 1e-10);
  }
}

TEST(Bidirectional, ConcatenatesLastOutputs) {
  clear_session();
  Bidirectional both({.layer = LSTM({.units = 3, .dtype = "float64"}), .dtype = "float64"});
  const Tensor x = random_tensor({2, 4, 5}, float64, 2);
  set_random_weights(both, {2, 4, 5});
  EXPECT_EQ(both.weights().size(), 6U);
  EXPECT_EQ(both.weights()[0].name(), "bidirectional/forward_lstm/lstm_cell/kernel");
  EXPECT_EQ(both.weights()[3].name(), "bidirectional/backward_lstm/lstm_cell/kernel");
  const BothDirections expected(both, x, {});
  const Tensor y = both(x);
  expect_close(y(all, slice(0, 3)), expected.forward.last, {2, 3}, 1e-10);
  expect_close(y(all, slice(3, 6)), expected.backward.last, {2, 3}, 1e-10);
  expect_weight_gradients(both, [&] { return both(x); });
}

TEST(Bidirectional, OutputsApartAndStates) {
  Bidirectional both({.layer = LSTM({.units = 3, .return_state = true, .dtype = "float64"}),
                      .merge_mode = "none",
                      .dtype = "float64"});
  const Tensor x = random_tensor({2, 4, 5}, float64, 2);
  set_random_weights(both, {2, 4, 5});
  const BothDirections expected(both, x, {});
  const Nest out = both(Nest(x));
  ASSERT_EQ(out.size(), 6U);
  expect_close(out[0].leaf(), expected.forward.last, {2, 3}, 1e-10);
  expect_close(out[1].leaf(), expected.backward.last, {2, 3}, 1e-10);
  expect_close(out[3].leaf(), expected.forward.states[1], {2, 3}, 1e-10);
  expect_close(out[5].leaf(), expected.backward.states[1], {2, 3}, 1e-10);
  // Starting where another call ended, in both directions.
  CallArgs args;
  for (size_t i = 2; i < 6; ++i) args.initial_state.push_back(out[i].leaf());
  const ReferenceResult next =
      run_reference(reference_lstm(both.backward_layer->get_weights()), x, {out[4].leaf(), out[5].leaf()}, {}, true);
  expect_close(both(Nest(x), args)[1].leaf(), next.last, {2, 3}, 1e-10);
}

TEST(Bidirectional, ErrorsAndConfigurations) {
  const Tensor x = zeros({2, 4, 5});
  expect_error([&] { Bidirectional({.layer = Dense({.units = 3})})(x); }, Code::invalid_argument, "go_backwards");
  expect_error([&] { Bidirectional({.layer = GRU({.units = 3}), .merge_mode = "max"})(x); }, Code::invalid_argument,
               "merge_mode");
  expect_error([&] { Bidirectional({.layer = GRU({.units = 3}), .backward_layer = GRU({.units = 3})})(x); },
               Code::invalid_argument, "same way");
  const Bidirectional both({.layer = GRU({.units = 3}), .merge_mode = "sum"});
  EXPECT_EQ(layer_from_config(layer_to_config(both))->get_config(), both.get_config());
}

TEST(TimeDistributed, AppliesTheLayerToEveryStep) {
  TimeDistributed each({.layer = Dense({.units = 2, .activation = "tanh"})});
  set_random_weights(each, {2, 3, 4, 5});
  const Tensor x = random_tensor({2, 3, 4, 5});
  Dense dense({.units = 2, .activation = "tanh"});
  dense.build_from_shapes(PartialShape{2, 4, 5});
  dense.set_weights(each.get_weights());
  std::vector<Tensor> steps;
  for (int64_t t = 0; t < 3; ++t) steps.push_back(dense(x(all, t)));
  const std::vector<double> expected = values_of(stack(steps, 1));
  expect_close(each(x), expected, {2, 3, 4, 2}, 1e-6);
  const auto call = [&](const Tensor& in) { return each(in); };
  for (const PartialShape& known : {PartialShape{kUnknownDim, 3, 4, 5}, PartialShape{2, kUnknownDim, 4, 5},
                                    PartialShape{kUnknownDim, kUnknownDim, 4, 5}}) {
    const auto f = function(call, {.input_signature = {TensorSpec{known, float32, "x"}}});
    expect_close(f(x), expected, {2, 3, 4, 2}, 1e-6);
  }
  EXPECT_NE(each.find_edge("layer"), nullptr);
  expect_error([] { TimeDistributed()(zeros({1, 2, 3})); }, Code::invalid_argument, "no layer");
}

// Words in sentences in documents: padding words do not count, and sentences of nothing else are left out after.
TEST(TimeDistributed, HandsTheMaskOfEveryStepOn) {
  const Tensor in = Input({3, 4}, {.name = "words", .dtype = int32});
  const auto embed = make<Embedding>({.input_dim = 9, .output_dim = 5, .mask_zero = true});
  const auto sentence = make<LSTM>({.units = 3});
  const auto document = make<GRU>({.units = 2});
  const auto each = make<TimeDistributed>({.layer = LayerPtr(sentence)});
  Model model(in, document(each(embed(in))));
  const Tensor words{{{1, 2, 0, 0}, {3, 4, 5, 6}, {0, 0, 0, 0}}, {{7, 0, 0, 0}, {0, 0, 0, 0}, {8, 8, 0, 0}}};
  // By hand: every sentence as long as it is, then the sentences that have words.
  const auto state_of = [&](const std::vector<std::vector<int>>& sentences) {
    std::vector<Tensor> steps;
    for (const std::vector<int>& ids : sentences) {
      steps.push_back((*sentence)((*embed)(expand_dims(Tensor::of<int>(ids, {static_cast<int64_t>(ids.size())}), 0))));
    }
    return values_of((*document)(stack(steps, 1)));
  };
  std::vector<double> expected = state_of({{1, 2}, {3, 4, 5, 6}});
  for (const double v : state_of({{7}, {8, 8}})) expected.push_back(v);
  expect_close(model(words), expected, {2, 2}, 1e-5);
  expect_close(function([&](const Tensor& w) { return model(w); })(words), expected, {2, 2}, 1e-5);
}

TEST(TimeDistributed, MasksOfItsResult) {
  const Tensor words = ones({2, 3, 4, 1});
  const Tensor of_words{{{true, false, true, true}, {false, false, false, false}, {true, true, true, true}},
                        {{false, false, false, true}, {true, true, false, false}, {false, false, false, false}}};
  // A layer that drops the mask: steps with any word stay.
  TimeDistributed pooled({.layer = LSTM({.units = 2})});
  pooled(words);
  EXPECT_EQ(values_of(cast(pooled.compute_mask(words, of_words), int32)), (std::vector<double>{1, 0, 1, 1, 1, 0}));
  // One that keeps it.
  TimeDistributed kept({.layer = LSTM({.units = 2, .return_sequences = true})});
  kept(words);
  const Tensor same = kept.compute_mask(words, of_words);
  EXPECT_EQ(same.shape(), (Shape{2, 3, 4}));
  EXPECT_TRUE(reduce_all(equal(same, of_words)));
  // One that makes it.
  TimeDistributed made({.layer = Embedding({.input_dim = 3, .output_dim = 2, .mask_zero = true})});
  const Tensor ids{{{1, 0}, {2, 2}, {0, 0}}};
  made(ids);
  EXPECT_EQ(values_of(cast(made.compute_mask(ids, {}), int32)), (std::vector<double>{1, 0, 1, 1, 0, 0}));
  // A mask of steps alone passes by.
  TimeDistributed dense({.layer = Dense({.units = 2})});
  dense(words);
  const Tensor of_steps{{true, true, false}, {false, true, true}};
  EXPECT_TRUE(reduce_all(equal(dense.compute_mask(words, of_steps), of_steps)));
  EXPECT_FALSE(dense.compute_mask(words, {}).defined());
}

}  // namespace
}  // namespace runnel::keras
