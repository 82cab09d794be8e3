// Whole sequences as one operation against the same layers step by step.
#include "runnel/keras/layers/sequence_op.h"

#include <gtest/gtest.h>

#include "runnel/base/parallel.h"
#include "runnel/graph/graph.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/keras/recurrent_reference.h"
#include "tests/support/resident.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::random_tensor;
using test::values_of;

constexpr int64_t kUnits = 19, kFeatures = 5, kTime = 7;

// What a layer gives for x, and the derivatives of a weighted sum of it by its weights and by x.
std::vector<Tensor> results(RecurrentLayer& layer, const Tensor& x, const Tensor& mask) {
  const CallArgs args{.training = {}, .mask = mask, .initial_state = {}, .attention_mask = {}};
  GradientTape tape;
  tape.watch(x);
  std::vector<Tensor> out = nest::flatten(layer(Nest(x), args));
  Tensor loss = zeros({}, out[0].dtype());
  for (size_t i = 0; i < out.size(); ++i) {
    loss = loss + reduce_sum(out[i] * random_tensor(out[i].shape(), out[i].dtype(), 50 + static_cast<uint32_t>(i)));
  }
  std::vector<GradSource> sources{x};
  for (const Variable& w : layer.trainable_weights()) sources.emplace_back(w);
  for (const Gradient& g : tape.gradient(std::vector<Tensor>{loss}, sources)) out.push_back(g.value());
  return out;
}

void expect_all_close(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "result " << i);
    double scale = 1;
    for (const double v : values_of(expected[i])) scale = std::max(scale, std::abs(v));
    expect_close(got[i], values_of(expected[i]), expected[i].shape(), tolerance * scale);
  }
}

bool uses_whole_sequences(RecurrentLayer& layer, const Tensor& x) {
  const auto f = function([&](const Tensor& in) { return nest::flatten(layer(Nest(in)))[0]; });
  for (const auto& node : f.get_concrete_function(x).graph().nodes()) {
    if (node->is("_RecurrentSequence")) return true;
  }
  return false;
}

// The layer against the same with `unroll`, which goes step by step.
template <class L>
void expect_the_loop(int64_t batch, int64_t features = kFeatures) {
  // Sums of many products stay small.
  const double most = 1 / std::sqrt(static_cast<double>(features));
  for (const bool sequences : {false, true}) {
    for (const bool backwards : {false, true}) {
      for (const bool time_major : {false, true}) {
        if (features > kFeatures && time_major == backwards) continue;  // half the ways are enough
        for (const bool masked : {false, true}) {
          SCOPED_TRACE(testing::Message() << "sequences " << sequences << ", backwards " << backwards << ", time first "
                                          << time_major << ", masked " << masked);
          const Shape shape = time_major ? Shape{kTime, batch, features} : Shape{batch, kTime, features};
          const Tensor x = random_tensor(shape, float32, 3, -most, most);
          const Tensor mask = masked ? random_tensor({shape[0], shape[1]}, float32, 4) > -0.4f : Tensor();
          L whole({.units = kUnits,
                   .return_sequences = sequences,
                   .return_state = true,
                   .go_backwards = backwards,
                   .time_major = time_major});
          L steps({.units = kUnits,
                   .return_sequences = sequences,
                   .return_state = true,
                   .go_backwards = backwards,
                   .time_major = time_major,
                   .unroll = true});
          set_random_weights(whole, shape);
          set_random_weights(steps, shape);
          ASSERT_TRUE(uses_whole_sequences(whole, x));
          ASSERT_FALSE(uses_whole_sequences(steps, x));
          const std::vector<Tensor> expected = results(steps, x, mask);
          expect_all_close(results(whole, x, mask), expected, 2e-5);
          const auto traced = function([&](const Tensor& in) { return results(whole, in, mask); });
          expect_all_close(traced(x), expected, 2e-5);
        }
      }
    }
  }
}

TEST(WholeSequences, AreTheLoopOfLSTM) { expect_the_loop<LSTM>(21); }
TEST(WholeSequences, AreTheLoopOfGRU) { expect_the_loop<GRU>(21); }
TEST(WholeSequences, AreTheLoopOfSimpleRNN) { expect_the_loop<SimpleRNN>(21); }
TEST(WholeSequences, OfOneSample) { expect_the_loop<LSTM>(1); }

// The kernel is then so large that one product for all steps comes first.
TEST(WholeSequences, OfManyFeatures) {
  if (!test::kSanitized) expect_the_loop<LSTM>(2, (5 << 20) / (4 * kUnits * 4));  // it takes long
  expect_the_loop<GRU>(1, (5 << 20) / (3 * kUnits * 4));
}

TEST(WholeSequences, OfNothing) {
  LSTM lstm({.units = 3, .return_sequences = true, .return_state = true});
  set_random_weights(lstm, {2, 4, 5});
  std::vector<Tensor> out = nest::flatten(lstm(Nest(zeros({2, 0, 5}))));
  EXPECT_EQ(out[0].shape(), (Shape{2, 0, 3}));
  expect_close(out[1], std::vector<double>(6, 0), {2, 3}, 0);
  out = results(lstm, zeros({0, 4, 5}), {});
  EXPECT_EQ(out[0].shape(), (Shape{0, 4, 3}));
  expect_close(out[4], std::vector<double>(60, 0), {5, 12}, 0);  // the gradient by the kernel
}

TEST(WholeSequences, SameBitsWithAnyNumberOfThreads) {
  const int threads = num_threads();
  const Tensor x = random_tensor({40, 9, 24}, float32, 3);
  const Tensor mask = random_tensor({40, 9}, float32, 4) > -0.4f;
  LSTM lstm({.units = 70, .return_sequences = true, .return_state = true});
  GRU gru({.units = 70, .return_sequences = true, .return_state = true});
  for (RecurrentLayer* layer : {static_cast<RecurrentLayer*>(&lstm), static_cast<RecurrentLayer*>(&gru)}) {
    set_random_weights(*layer, {40, 9, 24});
    set_num_threads(1);
    const std::vector<Tensor> one = results(*layer, x, mask);
    for (const int n : {2, 3}) {
      set_num_threads(n);
      const std::vector<Tensor> more = results(*layer, x, mask);
      for (size_t i = 0; i < one.size(); ++i) test::expect_same_bits(more[i], one[i]);
    }
  }
  set_num_threads(threads);
}

TEST(WholeSequences, SecondDerivativesAreThoseOfTheLoop) {
  const Tensor x = random_tensor({2, 4, 3}, float64, 3);
  const auto second = [&](LSTM layer) {
    set_random_weights(layer, {2, 4, 3});
    GradientTape outer;
    outer.watch(x);
    Tensor penalty;
    {
      GradientTape inner;
      inner.watch(x);
      const Tensor loss = reduce_sum(square(layer(x)));
      penalty = reduce_sum(square(inner.gradient(loss, x).value()));
    }
    std::vector<GradSource> sources{x};
    for (const Variable& w : layer.trainable_weights()) sources.emplace_back(w);
    std::vector<Tensor> all;
    for (const Gradient& g : outer.gradient(std::vector<Tensor>{penalty}, sources)) all.push_back(g.value());
    return all;
  };
  expect_all_close(second(LSTM({.units = 3, .dtype = "float64"})),
                   second(LSTM({.units = 3, .unroll = true, .dtype = "float64"})), 1e-10);
}

// As both states, and as the weights of two outputs.
TEST(WholeSequences, SecondDerivativesWhereOneTensorIsTwoInputs) {
  const Tensor x = random_tensor({2, 4, 3}, float64, 3), state = random_tensor({2, 3}, float64, 4);
  const auto second = [&](bool unroll) {
    LSTM layer({.units = 3, .return_state = true, .unroll = unroll, .dtype = "float64"});
    set_random_weights(layer, {2, 4, 3});
    GradientTape outer;
    outer.watch(x);
    outer.watch(state);
    Tensor penalty;
    {
      GradientTape inner;
      inner.watch(x);
      inner.watch(state);
      const CallArgs args{.training = {}, .mask = {}, .initial_state = {state, state}, .attention_mask = {}};
      const std::vector<Tensor> out = nest::flatten(layer(Nest(x), args));
      const Tensor loss = reduce_sum(square(out[0] + out[2]));
      for (const Gradient& g : inner.gradient(std::vector<Tensor>{loss}, {GradSource(x), GradSource(state)})) {
        penalty = penalty.defined() ? penalty + reduce_sum(square(g.value())) : reduce_sum(square(g.value()));
      }
    }
    std::vector<Tensor> all;
    for (const Gradient& g : outer.gradient(std::vector<Tensor>{penalty}, {GradSource(x), GradSource(state)})) {
      all.push_back(g.value());
    }
    return all;
  };
  expect_all_close(second(false), second(true), 1e-10);
}

TEST(WholeSequences, ShortFloatsComputeInFloat32) {
  const Tensor x = random_tensor({3, 6, 4});
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    LSTM lstm({.units = 5, .return_sequences = true, .dtype = policy});
    LSTM steps({.units = 5, .return_sequences = true, .unroll = true, .dtype = policy});
    set_random_weights(lstm, {3, 6, 4});
    set_random_weights(steps, {3, 6, 4});
    EXPECT_EQ(lstm(x).dtype(), steps(x).dtype());
    expect_close(cast(lstm(x), float32), values_of(steps(x)), {3, 6, 5}, 0.03);
  }
}

// What is written to files has TensorFlow's ops alone.
TEST(WholeSequences, AreLoopsInFiles) {
  GRU gru({.units = 3});
  set_random_weights(gru, {2, 4, 5});
  const TensorSpec unknown{PartialShape{kUnknownDim, kUnknownDim, 5}, float32, "x"};
  const auto f = function([&](const Tensor& in) { return gru(in); }, {.input_signature = {unknown}});
  const std::string bytes = f.get_concrete_function(random_tensor({2, 4, 5})).graph().to_graph_def();
  EXPECT_EQ(bytes.find("_RecurrentSequence"), std::string::npos);
  EXPECT_NE(bytes.find("While"), std::string::npos);
}

TEST(WholeSequences, OfModelsOnSeveralLayers) {
  const Tensor x = random_tensor({6, 80, 3}), y = random_tensor({6, 2});
  std::vector<double> losses[2];
  for (const bool unroll : {false, true}) {
    clear_session();
    random::set_seed(5);
    Sequential model({Bidirectional({.layer = LSTM({.units = 4, .return_sequences = true, .unroll = unroll})}),
                      GRU({.units = 4, .unroll = unroll}), Dense({.units = 2})});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    const auto history = model.fit(x, y, {.batch_size = 6, .epochs = 4, .verbose = 0});
    losses[unroll ? 1 : 0] = history.history.at("loss");
  }
  ASSERT_EQ(losses[0].size(), losses[1].size());
  for (size_t i = 0; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-4);
}

}  // namespace
}  // namespace runnel::keras
