#include "runnel/keras/layers/recurrent.h"
#include "runnel/graph/graph.h"

#include <algorithm>

#include "runnel/keras/layers/dense.h"
#include "runnel/runnel.h"
#include "tests/keras/recurrent_reference.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

constexpr double kRecurrentTolerance = 1e-10;

const Tensor& some_mask() {  // [2, 5]: steps left out at the start, in the middle and at the end
  static const Tensor mask{{true, false, true, true, false}, {false, true, true, false, true}};
  return mask;
}

// A layer with all its outputs against the reference: whole sequence, last output and states, in both directions, with
// and without a mask, eagerly, as an unrolled function and as a function with a loop.
template <class L, class Reference>
void expect_like_reference(typename L::Options options, Reference reference) {
  options.dtype = "float64";
  const Tensor x = random_tensor({2, 5, 4}, float64, 1);
  for (const bool backwards : {false, true}) {
    for (const bool sequences : {false, true}) {
      options.go_backwards = backwards;
      options.return_sequences = sequences;
      options.return_state = true;
      L layer(options);
      set_random_weights(layer, {2, 5, 4});
      const size_t num_states = layer.cell()->state_size().size();
      const ReferenceStep step = reference(layer.get_weights());
      const std::vector<Tensor> zero(num_states, zeros({2, 3}, float64));
      std::vector<Tensor> start;
      for (size_t i = 0; i < num_states; ++i)
        start.push_back(random_tensor({2, 3}, float64, 7 + static_cast<uint32_t>(i)));
      for (const Tensor& mask : {Tensor(), some_mask()}) {
        for (const bool given : {false, true}) {
          SCOPED_TRACE(testing::Message() << "backwards " << backwards << ", sequences " << sequences << ", mask "
                                          << mask.defined() << ", initial states " << given);
          const ReferenceResult expected = run_reference(step, x, given ? start : zero, mask, backwards);
          const auto call = [&](const Tensor& input) {
            CallArgs args{.training = {}, .mask = mask, .initial_state = {}, .attention_mask = {}};
            if (given) args.initial_state = start;
            return nest::flatten(layer(Nest(input), args));
          };
          const auto check = [&](const std::vector<Tensor>& got) {
            ASSERT_EQ(got.size(), 1 + num_states);
            expect_close(got[0], sequences ? expected.sequence : expected.last,
                         sequences ? Shape{2, 5, 3} : Shape{2, 3}, kRecurrentTolerance);
            for (size_t i = 0; i < num_states; ++i) {
              expect_close(got[i + 1], expected.states[i], {2, 3}, kRecurrentTolerance);
            }
          };
          check(call(x));
          check(function(call)(x));
          const TensorSpec unknown{PartialShape{kUnknownDim, kUnknownDim, 4}, float64, "x"};
          check(function(call, {.input_signature = {unknown}})(x));
        }
      }
    }
  }
}

TEST(Recurrent, SimpleRNNIsTheNaiveLoop) { expect_like_reference<SimpleRNN>({.units = 3}, reference_simple_rnn); }
TEST(Recurrent, LSTMIsTheNaiveLoop) { expect_like_reference<LSTM>({.units = 3}, reference_lstm); }
TEST(Recurrent, GRUIsTheNaiveLoop) {
  for (const bool reset_after : {true, false}) {
    expect_like_reference<GRU>({.units = 3, .reset_after = reset_after},
                               [&](const std::vector<Tensor>& w) { return reference_gru(w, reset_after); });
  }
}

template <class L>
void expect_recurrent_gradients(typename L::Options options) {
  options.dtype = "float64";
  options.return_sequences = true;
  L layer(options);
  set_random_weights(layer, {2, 3, 2});
  const Tensor x = random_tensor({2, 3, 2}, float64, 3);
  const Tensor mask{{true, true, false}, {false, true, true}};
  const CallArgs args{.training = {}, .mask = mask, .initial_state = {}, .attention_mask = {}};
  const auto call = [&](const Tensor& input) { return layer(input, args); };
  const TensorSpec unknown{PartialShape{kUnknownDim, kUnknownDim, 2}, float64, "x"};
  const auto looped = function(call, {.input_signature = {unknown}});
  expect_weight_gradients(layer, [&] { return call(x); });
  expect_weight_gradients(layer, [&] { return looped(x); });
  test::expect_gradients([&](const std::vector<Tensor>& in) { return call(in[0]); }, {x}, 6);
  test::expect_gradients([&](const std::vector<Tensor>& in) { return looped(in[0]); }, {x}, 6, 1e-6, false);
}

TEST(Recurrent, GradientsOfSimpleRNN) { expect_recurrent_gradients<SimpleRNN>({.units = 2}); }
TEST(Recurrent, GradientsOfLSTM) { expect_recurrent_gradients<LSTM>({.units = 2}); }
TEST(Recurrent, GradientsOfGRU) {
  expect_recurrent_gradients<GRU>({.units = 2});
  expect_recurrent_gradients<GRU>({.units = 2, .reset_after = false});
}

TEST(Recurrent, LongSequencesBecomeALoopUnlessUnrolled) {
  const Tensor x = random_tensor({2, 70, 3}, float64, 1);
  LSTM looped({.units = 4, .return_sequences = true, .dtype = "float64"});
  LSTM unrolled({.units = 4, .return_sequences = true, .unroll = true, .dtype = "float64"});
  set_random_weights(looped, {2, 70, 3});
  set_random_weights(unrolled, {2, 70, 3});
  const auto f = function([&](const Tensor& in) { return looped(in); });
  const auto g = function([&](const Tensor& in) { return unrolled(in); });
  const Tensor expected = looped(x);
  expect_close(f(x), values_of(expected), {2, 70, 4}, 1e-12);
  expect_close(g(x), values_of(expected), {2, 70, 4}, 1e-12);
  EXPECT_LT(f.get_concrete_function(x).graph().nodes().size(), 100);
  EXPECT_GT(g.get_concrete_function(x).graph().nodes().size(), 500);
}

TEST(Recurrent, TimeMajor) {
  LSTM batch_first({.units = 3, .return_sequences = true});
  LSTM time_first({.units = 3, .return_sequences = true, .time_major = true});
  set_random_weights(batch_first, {2, 5, 4});
  set_random_weights(time_first, {5, 2, 4});
  const Tensor x = random_tensor({2, 5, 4});
  const Tensor expected = transpose(batch_first(x), {1, 0, 2});
  expect_close(time_first(transpose(x, {1, 0, 2})), values_of(expected), {5, 2, 3}, 1e-6);
}

TEST(Recurrent, NamesShapesAndInitialValuesOfWeights) {
  clear_session();
  LSTM lstm({.units = 3});
  lstm(zeros({1, 2, 5}));
  const std::vector<Variable> w = lstm.weights();
  ASSERT_EQ(w.size(), 3U);
  EXPECT_EQ(w[0].name(), "lstm/lstm_cell/kernel");
  EXPECT_EQ(w[1].name(), "lstm/lstm_cell/recurrent_kernel");
  EXPECT_EQ(w[2].name(), "lstm/lstm_cell/bias");
  EXPECT_EQ(w[0].shape(), (Shape{5, 12}));
  EXPECT_EQ(w[1].shape(), (Shape{3, 12}));
  EXPECT_EQ(values_of(w[2].value()), (std::vector<double>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
  const Tensor r = w[1].value();  // orthogonal: its rows are
  expect_close(matmul(r, transpose(r)), {1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3}, 1e-5);
  ASSERT_NE(lstm.find_edge("cell"), nullptr);
  EXPECT_NE(lstm.find_edge("cell")->object->find_edge("recurrent_kernel"), nullptr);

  LSTM plain({.units = 3, .use_bias = false});
  plain(zeros({1, 2, 5}));
  EXPECT_EQ(plain.weights().size(), 2U);
  GRU gru({.units = 3});
  gru(zeros({1, 2, 5}));
  EXPECT_EQ(gru.weights()[2].shape(), (Shape{2, 9}));
  GRU before({.units = 3, .reset_after = false});
  before(zeros({1, 2, 5}));
  EXPECT_EQ(before.weights()[2].shape(), (Shape{9}));
  EXPECT_EQ(before.count_params(), 5 * 9 + 3 * 9 + 9);
}

TEST(Recurrent, ACellIsOneStep) {
  LSTMCell cell({.units = 3, .dtype = "float64"});
  const Tensor x = random_tensor({2, 4, 5}, float64, 2);
  set_random_weights(cell, {2, 5});
  States states = cell.get_initial_state(2);
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states[0].shape(), (Shape{2, 3}));
  Tensor output;
  for (int64_t t = 0; t < 4; ++t) {
    auto [next, after] = cell(x(all, t), states);
    output = next;
    states = after;
  }
  const ReferenceResult expected = run_reference(reference_lstm(cell.get_weights()), x, cell.get_initial_state(2));
  expect_close(output, expected.last, {2, 3}, kRecurrentTolerance);
  expect_close(states[1], expected.states[1], {2, 3}, kRecurrentTolerance);
  expect_error([&] { cell(x(all, 0), {output}); }, Code::invalid_argument, "an input and 2 states");
}

TEST(Recurrent, StackedCellsAreLayersOnTopOfEachOther) {
  RNN stacked({.cell = {make<LSTMCell>({.units = 3}), make<GRUCell>({.units = 4})}, .return_state = true});
  set_random_weights(stacked, {2, 5, 3});
  ASSERT_EQ(stacked.weights().size(), 6U);
  const std::vector<Tensor> values = stacked.get_weights();
  LSTM lower({.units = 3, .return_sequences = true});
  GRU upper({.units = 4});
  lower.build_from_shapes(PartialShape{2, 5, 3});
  upper.build_from_shapes(PartialShape{2, 5, 3});
  lower.set_weights({values.begin(), values.begin() + 3});
  upper.set_weights({values.begin() + 3, values.end()});
  const Tensor x = random_tensor({2, 5, 3});
  const Nest all = stacked(Nest(x));
  ASSERT_EQ(all.size(), 4U);  // the output, h and c, h
  expect_close(all[0].leaf(), values_of(upper(lower(x))), {2, 4}, 1e-5);
  const Trackable::Edge* cells = stacked.find_edge("cell")->object->find_edge("cells");
  ASSERT_NE(cells, nullptr);
  EXPECT_NE(cells->object->find_edge("1"), nullptr);
}

// The running sum of the inputs and how many there were.
struct SumCell : RNNCell {
  using RNNCell::RNNCell;
  std::vector<int64_t> state_size() const override { return {2, 1}; }
  CellStep step(const Tensor& input, const States& states, const CallArgs&) override {
    const Tensor sum = states[0] + input;
    return {sum * 10, {sum, states[1] + 1}};
  }
};

TEST(Recurrent, ACellOfYourOwn) {
  RNN rnn({.cell = std::make_shared<SumCell>(), .return_sequences = true, .return_state = true});
  const Nest all = rnn(Nest(Tensor{{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}}));
  expect_close(all[0].leaf(), {10, 20, 40, 60, 90, 120}, {1, 3, 2}, 1e-6);
  expect_close(all[1].leaf(), {9, 12}, {1, 2}, 1e-6);
  expect_close(all[2].leaf(), {3}, {1, 1}, 1e-6);
}

TEST(Recurrent, StatefulLayersGoOnWhereTheyEnded) {
  LSTM whole({.units = 3});
  LSTM parts({.units = 3, .stateful = true});
  set_random_weights(whole, {2, 6, 4});
  set_random_weights(parts, {2, 3, 4});
  EXPECT_EQ(parts.weights().size(), 3U);  // states are no weights
  const Tensor x = random_tensor({2, 6, 4});
  const std::vector<double> expected = values_of(whole(x));
  const auto step = function([&](const Tensor& in) { return parts(in); });
  for (int round = 0; round < 2; ++round) {
    step(x(all, slice(0, 3)));
    expect_close(step(x(all, slice(3, 6))), expected, {2, 3}, 1e-5);
    parts.reset_states();
  }
  parts.reset_states({ones({2, 3}), ones({2, 3})});
  EXPECT_EQ(values_of(parts.states()[1].value()), std::vector<double>(6, 1.0));
  expect_error([&] { parts.reset_states({ones({2, 3})}); }, Code::invalid_argument, "has 2 states, got 1");
  expect_error([&] { whole.reset_states(); }, Code::failed_precondition, "not stateful");
  LSTM unknown({.units = 3, .stateful = true});
  expect_error(
      [&] {
        unknown.build_from_shapes(PartialShape{kUnknownDim, 3, 4});
      },
      Code::invalid_argument, "needs to know its batch size");
}

TEST(Recurrent, StatesMayFollowTheSequenceInAList) {
  GRU gru({.units = 3});
  set_random_weights(gru, {2, 5, 4});
  const Tensor x = random_tensor({2, 5, 4}), start = random_tensor({2, 3}, float32, 9);
  CallArgs args;
  args.initial_state = {start};
  const Nest listed = gru(Nest::list({x, start}));
  expect_close(listed.leaf(), values_of(gru(x, args)), {2, 3}, 1e-7);
  args.initial_state = {start, start};
  expect_error([&] { gru(x, args); }, Code::invalid_argument, "has 1 states, got 2 initial ones");
}

TEST(Recurrent, DropoutIsTheSameForEveryStep) {
  random::set_seed(3);
  SimpleRNN layer({.units = 6,
                   .activation = nullptr,
                   .use_bias = false,
                   .kernel_initializer = "identity",
                   .recurrent_initializer = "zeros",
                   .dropout = 0.5,
                   .return_sequences = true});
  const Tensor x = ones({8, 3, 6});
  expect_close(layer(x), std::vector<double>(8 * 3 * 6, 1.0), {8, 3, 6}, 1e-6);
  CallArgs training;
  training.training = true;
  const std::vector<double> y = values_of(layer(x, training));
  int dropped = 0;
  for (size_t b = 0; b < 8; ++b) {
    for (size_t k = 0; k < 6; ++k) {
      const double first = y[b * 18 + k];
      EXPECT_TRUE(first == 0 || first == 2) << first;
      EXPECT_EQ(y[b * 18 + 6 + k], first);
      EXPECT_EQ(y[b * 18 + 12 + k], first);
      dropped += first == 0;
    }
  }
  EXPECT_GT(dropped, 8);
  EXPECT_LT(dropped, 40);
}

TEST(Recurrent, RecurrentDropoutMultipliesTheStates) {
  random::set_seed(4);
  SimpleRNN layer({.units = 16,
                   .activation = nullptr,
                   .use_bias = false,
                   .kernel_initializer = "zeros",
                   .recurrent_initializer = "identity",
                   .recurrent_dropout = 0.5});
  CallArgs args;
  args.training = true;
  args.initial_state = {ones({4, 16})};
  int dropped = 0;
  for (const double v : values_of(layer(ones({4, 3, 1}), args))) {  // three steps with one noise: 0 or 2 ** 3
    EXPECT_TRUE(v == 0 || v == 8) << v;
    dropped += v == 0;
  }
  EXPECT_GT(dropped, 10);
  EXPECT_LT(dropped, 54);
}

// Cells of four units, each of which shows what one gate of an LSTM lets through: activations are linear, so that
// c = f * c0 + i * g and h = o * c. Input (or state) is 1 in the one place that a gate looks at.
struct GateProbe {
  explicit GateProbe(LSTMCellOptions options) : cell(with_linear_gates(options)) {
    cell.build_from_shapes(PartialShape{kUnknownDim, 1});
    const bool of_states = options.recurrent_dropout > 0;
    std::vector<float> inward(16, 0), recurrent(64, 0), bias(16, 0);
    const auto gate = [](size_t which, size_t unit) { return which * 4 + unit; };  // i f c o
    for (size_t unit = 0; unit < 4; ++unit) {
      if (of_states) {
        recurrent[0 * 16 + gate(unit, unit)] = 1;  // looks at h[0]
      } else {
        inward[gate(unit, unit)] = 1;
      }
    }
    bias[gate(2, 0)] = 1;                     // unit 0 shows i: c = i * 1
    bias[gate(0, 2)] = 1;                     // unit 2 shows g: c = 1 * g
    bias[gate(0, 3)] = bias[gate(2, 3)] = 1;  // unit 3 shows o: h = o * 1
    cell.set_weights(
        {Tensor::of<float>(inward, {1, 16}), Tensor::of<float>(recurrent, {4, 16}), Tensor::of<float>(bias, {16})});
  }
  static LSTMCellOptions with_linear_gates(LSTMCellOptions options) {
    options.units = 4;
    options.activation = options.recurrent_activation = nullptr;
    options.unit_forget_bias = false;
    return options;
  }
  // [rows, 4]: what the gates i, f, g, o got.
  std::vector<double> operator()(int64_t rows) {
    const auto [h, states] = cell(ones({rows, 1}), {ones({rows, 4}), ones({rows, 4})}, {.training = true});
    const Tensor &c = states[1], o = h(all, slice(3, 4));
    return values_of(concat({c(all, slice(0, 3)), o}, 1));
  }
  LSTMCell cell;
};

TEST(Recurrent, GatesOfALSTMDropApartOrTogether) {
  random::set_seed(5);
  // How often two gates of a row were dropped differently, of 3 * 200 comparisons.
  const auto differences = [](const std::vector<double>& seen) {
    int count = 0;
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_TRUE(seen[i] == 0 || seen[i] == 2) << seen[i];
      count += seen[i] != seen[i / 4 * 4];
    }
    return count;
  };
  EXPECT_EQ(differences(GateProbe({.dropout = 0.5})(200)), 0) << "implementation 2: one draw for all gates";
  const int apart = differences(GateProbe({.dropout = 0.5, .implementation = 1})(200));
  EXPECT_GT(apart, 220);
  EXPECT_LT(apart, 380);
  for (const int64_t implementation : {1, 2}) {  // of states always apart
    const int of_states = differences(GateProbe({.recurrent_dropout = 0.5, .implementation = implementation})(200));
    EXPECT_GT(of_states, 220);
    EXPECT_LT(of_states, 380);
  }
}

TEST(Recurrent, GatesOfAGRUDropApartOrTogether) {
  random::set_seed(6);
  for (const bool reset_after : {false, true}) {
    for (const int64_t implementation : {1, 2}) {
      for (const bool of_states : {false, true}) {
        SCOPED_TRACE(testing::Message() << reset_after << implementation << of_states);
        // Unit 0 shows z: h = z * 1 + (1 - z) * 0. Unit 1 shows the candidate: z is 0.
        GRUCell cell({.units = 2,
                      .activation = nullptr,
                      .recurrent_activation = nullptr,
                      .dropout = of_states ? 0 : 0.5,
                      .recurrent_dropout = of_states ? 0.5 : 0,
                      .reset_after = reset_after,
                      .implementation = implementation});
        cell.build_from_shapes(PartialShape{kUnknownDim, 1});
        std::vector<float> inward(6, 0), recurrent(12, 0), bias(reset_after ? 12 : 6, 0);
        (of_states ? recurrent : inward)[0] = 1;
        (of_states ? recurrent : inward)[5] = 1;
        bias[2] = bias[3] = 1;  // r
        cell.set_weights({Tensor::of<float>(inward, {1, 6}), Tensor::of<float>(recurrent, {2, 6}),
                          Tensor::of<float>(bias, reset_after ? Shape{2, 6} : Shape{6})});
        const int64_t rows = 200;
        const Tensor start = concat({ones({rows, 1}), zeros({rows, 1})}, 1);
        const std::vector<double> h = values_of(cell(ones({rows, 1}), {start}, {.training = true}).output);
        int different = 0;
        for (size_t i = 0; i < h.size(); i += 2) {
          EXPECT_TRUE((h[i] == 0 || h[i] == 2) && (h[i + 1] == 0 || h[i + 1] == 2)) << h[i] << " " << h[i + 1];
          different += h[i] != h[i + 1];
        }
        if (implementation == 2 && !of_states) {
          EXPECT_EQ(different, 0);
        } else {
          EXPECT_GT(different, 65);
          EXPECT_LT(different, 135);
        }
      }
    }
  }
}

// As in Keras, where such a layer is one operation: other elements are dropped in every step. With no states and input
// 1 in one place, every step of an LSTM without memory gives one of two outputs.
TEST(Recurrent, PlainLSTMDropsAnewInEveryStep) {
  random::set_seed(7);
  const auto rows_with_both = [](LSTM layer) {
    layer.build_from_shapes(PartialShape{kUnknownDim, 8, 1});
    // The forget gate is shut by its bias; the others see the input alone.
    layer.set_weights({Tensor{{1.f, 0.f, 1.f, 1.f}}, zeros({1, 4}), Tensor{0.f, -1e4f, 0.f, 0.f}});
    const std::vector<double> y = values_of(layer(ones({32, 8, 1}), {.training = true}));
    int both = 0;
    for (size_t row = 0; row < 32; ++row) {
      const auto dropped =
          std::count(y.begin() + static_cast<long>(row * 8), y.begin() + static_cast<long>(row * 8 + 8), 0.0);
      both += dropped > 0 && dropped < 8;
    }
    return both;
  };
  EXPECT_GT(rows_with_both(LSTM({.units = 1, .dropout = 0.5, .return_sequences = true})), 24);
  // What is not that operation drops the same in all steps.
  EXPECT_EQ(rows_with_both(LSTM({.units = 1, .dropout = 0.5, .return_sequences = true, .unroll = true})), 0);
  EXPECT_EQ(rows_with_both(LSTM(
                {.units = 1, .activation = "softsign", .dropout = 0.5, .return_sequences = true, .implementation = 1})),
            0);
}

TEST(Recurrent, ImplementationsAreWrittenAsTheyAre) {
  EXPECT_EQ(LSTM({.units = 2}).get_config()["implementation"].as_int(), 2);
  EXPECT_EQ(LSTM({.units = 2, .implementation = 1}).get_config()["implementation"].as_int(), 1);
  EXPECT_EQ(LSTM({.units = 2, .recurrent_dropout = 0.5}).get_config()["implementation"].as_int(), 1);
  EXPECT_EQ(GRUCell({.units = 2, .recurrent_dropout = 0.5}).get_config()["implementation"].as_int(), 1);
  expect_error(
      [] {
        GRU({.units = 2, .implementation = 3})(zeros({1, 2, 3}));
      },
      Code::invalid_argument, "implementation must be 1 or 2");
}

TEST(Recurrent, ConfigurationsMakeTheSameLayer) {
  const LSTM lstm({.units = 3, .recurrent_activation = "hard_sigmoid", .return_sequences = true, .name = "memory"});
  const auto copy = std::dynamic_pointer_cast<LSTM>(layer_from_config(layer_to_config(lstm)));
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->get_config(), lstm.get_config());
  EXPECT_EQ(lstm.get_config()["recurrent_activation"].as_text(), "hard_sigmoid");
  EXPECT_EQ(lstm.get_config()["unit_forget_bias"].as_bool(), true);

  const RNN rnn({.cell = {make<LSTMCell>({.units = 3}), make<SimpleRNNCell>({.units = 2})}, .go_backwards = true});
  const auto again = std::dynamic_pointer_cast<RNN>(layer_from_config(layer_to_config(rnn)));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->get_config(), rnn.get_config());
  EXPECT_EQ(again->options().cell->state_size(), (std::vector<int64_t>{3, 3, 2}));
}

TEST(Recurrent, MixedPrecisionComputesInTheShortType) {
  LSTM lstm({.units = 3, .dtype = "mixed_bfloat16"});
  const Tensor y = lstm(random_tensor({2, 5, 4}));
  EXPECT_EQ(y.dtype(), bfloat16);
  EXPECT_EQ(lstm.weights()[0].dtype(), float32);
}

TEST(Recurrent, IsBuiltByHand) {
  LSTM lstm({.units = 2});
  lstm.build(PartialShape{2, 4, 3});
  ASSERT_EQ(lstm.weights().size(), 3u);
  const Variable kernel = lstm.weights()[0];
  EXPECT_EQ(lstm(ones({2, 4, 3})).dim(1), 2);
  EXPECT_EQ(lstm.weights().size(), 3u);
  test::expect_same_bits(lstm.weights()[0].value(), kernel.value());
}

TEST(Recurrent, Errors) {
  expect_error([] { LSTM({.units = 0})(zeros({1, 2, 3})); }, Code::invalid_argument, "units must be positive");
  expect_error([] { LSTM({.units = 2})(zeros({2, 3})); }, Code::invalid_argument, "dimensions");
  expect_error([] { GRU({.units = 2, .dropout = 1.5})(zeros({1, 2, 3})); }, Code::invalid_argument, "between 0 and 1");
  expect_error([] { RNN()(zeros({1, 2, 3})); }, Code::invalid_argument, "no cell");
}

}  // namespace
}  // namespace runnel::keras
