#include "runnel/keras/layers/recurrent.h"

#include <cstring>

#include "runnel/base/format.h"
#include "runnel/function/control_flow.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

// Longer sequences become a loop in traced functions: more nodes would cost more to make than they save.
constexpr int64_t kMaxUnrolled = 64;

Tensor time_and_batch_swapped(const Tensor& x) {
  std::vector<int64_t> perm(static_cast<size_t>(x.partial_shape().rank()));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm.at(0), perm.at(1));
  return transpose(x, perm);
}

// The step's values where the mask ([batch]) holds, what was before elsewhere.
void keep_masked(const Tensor& mask, CellStep& next, const Tensor& output, const States& states) {
  const Tensor rows = expand_dims(mask, -1);
  next.output = where(rows, next.output, output);
  for (size_t i = 0; i < states.size(); ++i) next.states[i] = where(rows, next.states[i], states[i]);
}

TensorArray steps_of(const Tensor& x) { return TensorArray(x.dtype(), shape(x)[0]).unstack(x); }

// The elements stacked; the array itself does not know how many there are.
Tensor all_steps(const TensorArray& array, int64_t steps) {
  const Tensor stacked = array.stack();
  if (steps == kUnknownDim) return stacked;
  Dims dims = stacked.partial_shape().dims();
  dims[0] = steps;
  return ensure_shape(stacked, PartialShape(dims));
}

Variable zero_state(const std::string& name, const Shape& shape, DType dtype) {
  Tensor value = Tensor::empty(dtype, shape);
  std::memset(value.mutable_data<char>(), 0, value.num_bytes());
  return Variable(value, {.name = name, .trainable = false});
}

}  // namespace

struct RecurrentLayer::Result {
  Tensor output;    // of the last step
  Tensor sequence;  // of all, time first; when asked for
  States states;
};

void RecurrentLayer::prepare() {
  set_input_spec(
      {.min_ndim = 3, .means = settings().time_major ? "[steps, batch, features]" : "[batch, steps, features]"});
  set_supports_masking(true);
  cell_ = add_layer("cell", make_cell());
  track_empty("state_spec");
}

void RecurrentLayer::build(const PartialShape& input) {
  check_shape(input);  // of the sequence alone, where initial states come with it
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

Nest RecurrentLayer::call(const Nest& inputs, const CallArgs& args) {
  const SequenceSettings how = settings();
  Tensor x = inputs.is_leaf() ? inputs.leaf() : nest::flatten(inputs).at(0);
  Tensor mask = args.mask;
  if (!how.time_major) {
    x = time_and_batch_swapped(x);
    if (mask.defined()) mask = transpose(mask, {1, 0});
  }
  if (how.go_backwards) {
    x = reverse(x, 0);
    if (mask.defined()) mask = reverse(mask, 0);
  }
  const int64_t steps = x.partial_shape()[0], rows = x.partial_shape()[1];
  const Tensor batch_size = rows == kUnknownDim ? shape(x)[1] : int_scalar(rows);
  const States states = initial_states(inputs, args, batch_size);
  const Tensor zero_output = zeros(stack({batch_size, int_scalar(cell_->output_size())}), compute_dtype());

  const CellSequence sequence = cell_->begin(batch_size, args);
  const Tensor projected = sequence.project(x);
  const bool unrolled = steps != kUnknownDim && (steps <= kMaxUnrolled || how.unroll || !is_tracing());
  const Result result = unrolled ? run_unrolled(sequence, projected, mask, states, zero_output)
                                 : run_loop(sequence, projected, mask, states, zero_output);

  for (size_t i = 0; i < states_.size(); ++i) states_[i].assign(result.states[i]);
  Tensor output = how.return_sequences ? result.sequence : result.output;
  if (how.return_sequences && !how.time_major) output = time_and_batch_swapped(output);
  if (!how.return_state) return output;
  std::vector<Nest> all{output};
  all.insert(all.end(), result.states.begin(), result.states.end());
  return Nest::list(std::move(all));
}

RecurrentLayer::Result RecurrentLayer::run_unrolled(const CellSequence& sequence, const Tensor& projected,
                                                    const Tensor& mask, States states,
                                                    const Tensor& zero_output) const {
  const std::vector<Tensor> inputs = unstack(projected, 0, projected.partial_shape()[0]);
  const std::vector<Tensor> masks =
      mask.defined() ? unstack(mask, 0, projected.partial_shape()[0]) : std::vector<Tensor>();
  const bool want_sequence = settings().return_sequences;
  Tensor output = zero_output;
  std::vector<Tensor> outputs;
  for (size_t t = 0; t < inputs.size(); ++t) {
    CellStep next = sequence.step(inputs[t], states);
    if (mask.defined()) keep_masked(masks[t], next, output, states);
    output = next.output;
    states = std::move(next.states);
    if (want_sequence) outputs.push_back(output);
  }
  if (!want_sequence) return {output, {}, states};
  return {output, outputs.empty() ? expand_dims(zero_output, 0)(slice(0, 0)) : stack(outputs), states};
}

RecurrentLayer::Result RecurrentLayer::run_loop(const CellSequence& sequence, const Tensor& projected,
                                                const Tensor& mask, const States& states,
                                                const Tensor& zero_output) const {
  const bool want_sequence = settings().return_sequences;
  const Tensor steps = shape(projected)[0];
  const TensorArray inputs = steps_of(projected);
  const TensorArray masks = mask.defined() ? steps_of(mask) : TensorArray();
  const TensorArray no_outputs(zero_output.dtype(), steps, {.element_shape = zero_output.partial_shape()});
  const auto body = [&](const Tensor& t, const Tensor& output, const States& before, const TensorArray& outputs) {
    CellStep next = sequence.step(inputs.read(t), before);
    if (mask.defined()) keep_masked(masks.read(t), next, output, before);
    const TensorArray more = want_sequence ? outputs.write(t, next.output) : outputs;
    return std::tuple{t + 1, next.output, next.states, more};
  };
  const auto [count, output, last, outputs] =
      while_loop([&](const Tensor& t, const Tensor&, const States&, const TensorArray&) { return t < steps; }, body,
                 std::tuple{Tensor(0), zero_output, states, no_outputs});
  return {output, want_sequence ? all_steps(outputs, projected.partial_shape()[0]) : Tensor(), last};
}

std::shared_ptr<RNNCell> RNN::make_cell() const {
  if (!options_.cell) throw invalid_argument("[RNN] no cell was given: RNN({{.cell = keras::make<LSTMCell>(...)}})");
  return options_.cell;
}

}  // namespace runnel::keras
