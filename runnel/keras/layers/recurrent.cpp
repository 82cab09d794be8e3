#include "runnel/keras/layers/recurrent.h"

#include <cstring>
#include <optional>

#include "runnel/base/format.h"
#include "runnel/keras/layers/sequence_op.h"
#include "runnel/ops/array.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {
namespace {

Variable zero_state(const std::string& name, const Shape& shape, DType dtype) {
  Tensor value = Tensor::empty(dtype, shape);
  std::memset(value.mutable_data<char>(), 0, value.num_bytes());
  return Variable(value, {.name = name, .trainable = false});
}

// What Keras's graphs have where a layer keeps the specifications of its states: no values, and a node inside for every
// stacked cell with several states.
std::shared_ptr<Trackable> state_specs(const RNNCell& cell) {
  auto specs = std::make_shared<TrackableDict>();
  const auto* stacked = dynamic_cast<const StackedRNNCells*>(&cell);
  if (!stacked) return specs;
  const std::vector<CellPtr>& cells = stacked->options().cells.all;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i]->state_size().size() > 1) specs->set(std::to_string(i), std::make_shared<TrackableList>());
  }
  return specs;
}

// A cell whose sequence is one operation.
struct PlainCell {
  CellKind kind;
  Variable kernel, recurrent, bias;
  double dropout = 0;  // of inputs, anew in every step
};
template <class Cell>
PlainCell plain_cell_of(CellKind kind, const Cell& cell, bool training) {
  return {kind, cell.kernel, cell.recurrent_kernel, cell.bias, training ? cell.options().dropout : 0};
}
std::optional<PlainCell> plain_cell(const RNNCell& cell, const SequenceSettings& how, bool training) {
  if (const auto* lstm = dynamic_cast<const LSTMCell*>(&cell); lstm && lstm->drops_every_step) {
    return plain_cell_of(CellKind::lstm, *lstm, training);
  }
  if (const auto* gru = dynamic_cast<const GRUCell*>(&cell); gru && gru->drops_every_step) {
    return plain_cell_of(CellKind::gru, *gru, training);
  }
  const auto* simple = dynamic_cast<const SimpleRNNCell*>(&cell);
  if (!simple || how.unroll) return {};
  const SimpleRNNCellOptions& o = simple->options();
  if (!o.use_bias || !o.activation.is_named("tanh")) return {};
  if (training && (o.dropout > 0 || o.recurrent_dropout > 0)) return {};
  return plain_cell_of(CellKind::simple, *simple, false);
}

}  // namespace

void RecurrentLayer::prepare() {
  set_input_spec(
      {.min_ndim = 3, .means = settings().time_major ? "[steps, batch, features]" : "[batch, steps, features]"});
  set_supports_masking(true);
  cell_ = add_layer("cell", make_cell());
  if (!find_edge("state_spec")) track("state_spec", state_specs(*cell_));
}

void RecurrentLayer::build(const PartialShape& input) {
  if (!cell_) return build_from_shapes(input);  // called by hand: makes the cell, and comes back
  check_shape(input);                           // of the sequence alone, where initial states come with it
  known_dim(input, -1);
  const int64_t batch = input[settings().time_major ? 1 : 0];
  Dims step{batch};
  step.insert(step.end(), input.begin() + 2, input.end());
  cell_->build_from_shapes(PartialShape(step));
  if (!settings().stateful) return;
  if (batch == kUnknownDim) {
    throw invalid_argument(
        "[{}] layer '{}' is stateful and needs to know its batch size: give the model's input a batch_size, or call "
        "the "
        "layer with a tensor of known shape",
        class_name(), name());
  }
  for (const int64_t size : cell_->state_size()) {
    states_.push_back(
        zero_state(fmt::format("{}/state_{}", name(), states_.size()), Shape{batch, size}, compute_dtype()));
  }
}

void RecurrentLayer::build(const NestOf<PartialShape>& inputs) { build(nest::flatten(inputs).at(0)); }

void RecurrentLayer::reset_states(const States& values) {
  if (!settings().stateful) {
    throw make_error(Code::failed_precondition, "[{}] layer '{}' is not stateful", class_name(), name());
  }
  if (!values.empty() && values.size() != states_.size()) {
    throw invalid_argument("[{}] layer '{}' has {} states, got {} values", class_name(), name(), states_.size(),
                           values.size());
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].assign(values.empty() ? zeros(states_[i].shape(), states_[i].dtype()) : values[i]);
  }
}

Tensor RecurrentLayer::compute_mask(const Nest&, const Tensor& mask) {
  return settings().return_sequences ? mask : Tensor();
}

States RecurrentLayer::initial_states(const Nest& inputs, const CallArgs& args, const Tensor& batch_size) const {
  States states = args.initial_state;
  if (!inputs.is_leaf() && inputs.size() > 1) {
    states = nest::flatten(inputs);
    states.erase(states.begin());
  }
  if (states.empty() && settings().stateful) {
    for (const Variable& state : states_) states.push_back(state.value());
  }
  if (states.empty()) return cell_->get_initial_state(batch_size, compute_dtype());
  const size_t expected = cell_->state_size().size();
  if (states.size() != expected) {
    throw invalid_argument("[{}] layer '{}' has {} states, got {} initial ones", class_name(), name(), expected,
                           states.size());
  }
  for (Tensor& state : states) {
    if (state.dtype() != compute_dtype()) state = cast(state, compute_dtype());
  }
  return states;
}

SequenceResult RecurrentLayer::run_by_steps(Tensor x, Tensor mask, const Tensor& batch_size, const States& states,
                                            const CallArgs& args) const {
  const SequenceSettings how = settings();
  if (!how.time_major) {
    x = time_and_batch_swapped(x);
    if (mask.defined()) mask = transpose(mask, {1, 0});
  }
  if (how.go_backwards) {
    x = reverse(x, 0);
    if (mask.defined()) mask = reverse(mask, 0);
  }
  const Tensor zero_output = zeros(stack({batch_size, int_scalar(cell_->output_size())}), compute_dtype());
  const CellSequence sequence = cell_->begin(batch_size, args);
  SequenceResult result =
      run_steps(sequence, sequence.project(x), mask, states, zero_output, how.return_sequences, how.unroll);
  if (how.return_sequences && !how.time_major) result.sequence = time_and_batch_swapped(result.sequence);
  return result;
}

Nest RecurrentLayer::call(const Nest& inputs, const CallArgs& args) {
  const SequenceSettings how = settings();
  const Tensor x = inputs.is_leaf() ? inputs.leaf() : nest::flatten(inputs).at(0);
  const int64_t rows = x.partial_shape()[how.time_major ? 1 : 0];
  const Tensor batch_size = rows == kUnknownDim ? shape(x)[how.time_major ? 1 : 0] : int_scalar(rows);
  const States states = initial_states(inputs, args, batch_size);
  const std::optional<PlainCell> plain = plain_cell(*cell_, how, args.training.value_or(false));
  // Of other ranks there is no such operation, and other devices have none.
  const bool whole = plain && x.partial_shape().rank() == 3 && (x.is_symbolic() || x.device().is_host());
  const SequenceResult result = !whole ? run_by_steps(x, args.mask, batch_size, states, args)
                                       : run_whole({.cell = plain->kind,
                                                    .x = plain->dropout > 0 ? nn::dropout(x, plain->dropout) : x,
                                                    .mask = args.mask,
                                                    .states = states,
                                                    .kernel = compute_value(plain->kernel),
                                                    .recurrent = compute_value(plain->recurrent),
                                                    .bias = compute_value(plain->bias),
                                                    .time_major = how.time_major,
                                                    .go_backwards = how.go_backwards,
                                                    .return_sequences = how.return_sequences});

  for (size_t i = 0; i < states_.size(); ++i) states_[i].assign(result.states[i]);
  const Tensor output = how.return_sequences ? result.sequence : result.output;
  if (!how.return_state) return output;
  std::vector<Nest> all{output};
  all.insert(all.end(), result.states.begin(), result.states.end());
  return Nest::list(std::move(all));
}

std::shared_ptr<RNNCell> RNN::make_cell() const {
  if (!options_.cell) throw invalid_argument("[RNN] no cell was given: RNN({{.cell = keras::make<LSTMCell>(...)}})");
  return options_.cell;
}

}  // namespace runnel::keras
