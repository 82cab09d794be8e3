#pragma once

#include "runnel/keras/layers/cells.h"

namespace runnel::keras {

struct SequenceResult;

// What all recurrent layers can be told about the sequence.
template <class O>
constexpr auto sequence_fields() {
  return field_list(
      field("return_sequences", &O::return_sequences, "the output of every step, not that of the last alone"),
      field("return_state", &O::return_state, "the result is the list [output, states...]"),
      field("go_backwards", &O::go_backwards, "from the last step to the first"),
      field("stateful", &O::stateful, "a batch starts with the states in which the one before it ended"),
      field("unroll", &O::unroll, "never a loop in traced functions, however many steps there are"),
      field("time_major", &O::time_major, "inputs and outputs are [time, batch, ...]"));
}
// The same as members, in the order of SimpleRNN, LSTM and GRU. A macro, as RUNNEL_LAYER_OPTIONS.
#define RUNNEL_SEQUENCE_OPTIONS  \
  bool return_sequences = false; \
  bool return_state = false;     \
  bool go_backwards = false;     \
  bool stateful = false;         \
  bool time_major = false;       \
  bool unroll = false

struct SequenceSettings {
  RUNNEL_SEQUENCE_OPTIONS;
  static constexpr auto fields() { return sequence_fields<SequenceSettings>(); }
};

// A cell applied to every step of a sequence [batch, time, inputs]. Steps that the mask leaves out keep the states and
// repeat the output before them. The initial states are zeros, those of CallArgs::initial_state, or those that
// follow the sequence in a list of inputs. A call with a Nest returns a Nest: the list of return_state.
class RUNNEL_API RecurrentLayer : public Layer {
 public:
  using Layer::Layer;

  void prepare() override;
  void build(const PartialShape& input) override;
  void build(const NestOf<PartialShape>& inputs) override;
  Nest call(const Nest& inputs, const CallArgs& args) override;
  using Layer::call;
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override;

  virtual SequenceSettings settings() const = 0;
  const std::shared_ptr<RNNCell>& cell() const { return cell_; }

  // Of a stateful layer: the states with which the next batch starts.
  const std::vector<Variable>& states() const { return states_; }
  // Sets them to zero, or to these values.
  void reset_states(const States& values = {});

 protected:
  virtual std::shared_ptr<RNNCell> make_cell() const = 0;

 private:
  States initial_states(const Nest& inputs, const CallArgs& args, const Tensor& batch_size) const;
  SequenceResult run_by_steps(Tensor x, Tensor mask, const Tensor& batch_size, const States& states,
                              const CallArgs& args) const;

  std::shared_ptr<RNNCell> cell_;
  std::vector<Variable> states_;
};

template <class Options>
SequenceSettings sequence_settings(const Options& o) {
  SequenceSettings settings;
  copy_shared_fields(o, settings);
  return settings;
}

// The settings of a layer that are those of its cell.
template <class CellOptions, class Options>
CellOptions cell_settings(const Options& o, const Policy& dtype, const char* name) {
  CellOptions c;
  copy_shared_fields(o, c);
  c.name = name;
  c.dtype = dtype;
  return c;
}

// LSTM and GRU with these settings are one operation in Keras, which drops inputs anew in every step.
template <class Options>
bool is_one_operation(const Options& o) {
  bool reset_fits = true;
  if constexpr (requires { o.reset_after; }) reset_fits = o.reset_after;
  return o.activation.is_named("tanh") && o.recurrent_activation.is_named("sigmoid") && o.recurrent_dropout == 0 &&
         !o.unroll && o.use_bias && reset_fits;
}

// A recurrent layer whose settings are those of its cell and of the sequence.
template <class Self, class Options, class Cell>
class RecurrentOf : public LayerOf<Self, Options, RecurrentLayer> {
 public:
  using LayerOf<Self, Options, RecurrentLayer>::LayerOf;
  SequenceSettings settings() const override { return sequence_settings(this->options_); }
  void prepare() override {
    RecurrentLayer::prepare();
    this->set_activity_regularizer(this->options_.activity_regularizer);
  }
  Config get_config() const override {
    Config config = LayerOf<Self, Options, RecurrentLayer>::get_config();
    if constexpr (requires { this->options_.implementation; }) {
      config.set("implementation", effective_implementation(this->options_));
    }
    return config;
  }

 protected:
  std::shared_ptr<RNNCell> make_cell() const override {
    auto cell = std::make_shared<Cell>(
        cell_settings<typename Cell::Options>(this->options_, this->dtype_policy(), Self::kCellName));
    if constexpr (requires { cell->drops_every_step; }) cell->drops_every_step = is_one_operation(this->options_);
    return cell;
  }
};

struct RNNOptions {
  NamedOnly named_only = {};
  CellPtr cell = {};
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;
  bool time_major = false;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&RNNOptions::cell>;
  static constexpr auto fields() {
    using O = RNNOptions;
    return joined_fields(sequence_fields<O>(), field_list(field("cell", &O::cell, "one, or a list: {lower, upper}")));
  }
};
// Any cell: RNN({.cell = keras::make<LSTMCell>({.units = 8})}).
class RUNNEL_API RNN : public LayerOf<RNN, RNNOptions, RecurrentLayer> {
 public:
  static constexpr const char* kClassName = "RNN";
  using LayerOf::LayerOf;
  SequenceSettings settings() const override { return sequence_settings(options_); }

 protected:
  std::shared_ptr<RNNCell> make_cell() const override;
};

struct SimpleRNNOptions {
  NamedOnly named_only = {};
  int64_t units = 0;
  Activation activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  RUNNEL_SEQUENCE_OPTIONS;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&SimpleRNNOptions::units, &SimpleRNNOptions::activation>;
  static constexpr auto fields() {
    using O = SimpleRNNOptions;
    return joined_fields(sequence_fields<O>(), CellFields<O>());
  }
};
class RUNNEL_API SimpleRNN : public RecurrentOf<SimpleRNN, SimpleRNNOptions, SimpleRNNCell> {
 public:
  static constexpr const char* kClassName = "SimpleRNN";
  static constexpr const char* kCellName = "simple_rnn_cell";
  using RecurrentOf::RecurrentOf;
};

struct LSTMOptions {
  NamedOnly named_only = {};
  int64_t units = 0;
  Activation activation = "tanh";
  Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  RUNNEL_SEQUENCE_OPTIONS;
  int64_t implementation = 2;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&LSTMOptions::units, &LSTMOptions::activation>;
  static constexpr auto fields() {
    using O = LSTMOptions;
    return joined_fields(sequence_fields<O>(), CellFields<O>(), implementation_fields<O>());
  }
};
// Long short-term memory; the states are h and c.
class RUNNEL_API LSTM : public RecurrentOf<LSTM, LSTMOptions, LSTMCell> {
 public:
  static constexpr const char* kClassName = "LSTM";
  static constexpr const char* kCellName = "lstm_cell";
  using RecurrentOf::RecurrentOf;
};

struct GRUOptions {
  NamedOnly named_only = {};
  int64_t units = 0;
  Activation activation = "tanh";
  Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  RUNNEL_SEQUENCE_OPTIONS;
  bool reset_after = true;
  int64_t implementation = 2;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&GRUOptions::units, &GRUOptions::activation>;
  static constexpr auto fields() {
    using O = GRUOptions;
    return joined_fields(sequence_fields<O>(), CellFields<O>(), implementation_fields<O>(), reset_fields<O>());
  }
};
// Gated recurrent unit.
class RUNNEL_API GRU : public RecurrentOf<GRU, GRUOptions, GRUCell> {
 public:
  static constexpr const char* kClassName = "GRU";
  static constexpr const char* kCellName = "gru_cell";
  using RecurrentOf::RecurrentOf;
};

}  // namespace runnel::keras
