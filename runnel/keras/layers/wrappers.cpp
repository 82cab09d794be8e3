#include "runnel/keras/layers/wrappers.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/keras/layers/recurrent.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras {
namespace {

constexpr const char* kMergeModes[] = {"concat", "sum", "mul", "ave", "none", ""};

// Another layer of the same settings, but for its name and, where it is flipped, its direction.
LayerPtr direction_of(const Layer& layer, const std::string& prefix, bool flipped) {
  Config settings = layer.get_config();
  settings.set("name", prefix + layer.name());
  const Config* backwards = settings.find("go_backwards");
  if (!backwards) {
    throw invalid_argument("[Bidirectional] layer '{}' ({}) has no setting go_backwards: it is no recurrent layer",
                           layer.name(), layer.class_name());
  }
  if (flipped) settings.set("go_backwards", !backwards->as_bool());
  Config description = layer_to_config(layer);
  description.set("config", std::move(settings));
  return layer_from_config(description);
}

bool is_set(const Config& settings, const char* key) {
  const Config* value = settings.find(key);
  return value && value->as_bool();
}

// The dimensions of a tensor from one on, known before the graph runs where the sizes are.
Tensor dims_from(const Tensor& x, int first) {
  const PartialShape& shape_of_x = x.partial_shape();
  const Dims dims(shape_of_x.begin() + first, shape_of_x.end());
  const bool known = std::none_of(dims.begin(), dims.end(), [](int64_t d) { return d == kUnknownDim; });
  return known ? int_vector(dims) : shape(x)(slice(first, none));
}

// [batch, time, ...] -> [batch * time, ...]
Tensor steps_as_rows(const Tensor& x) { return reshape(x, concat({int_vector({-1}), dims_from(x, 2)}, 0)); }

// The same back, with the batch and time of `like`.
Tensor rows_as_steps(const Tensor& y, const Tensor& like) {
  const PartialShape& from = like.partial_shape();
  const Tensor lead = from[0] != kUnknownDim   ? int_vector({from[0], -1})
                      : from[1] != kUnknownDim ? int_vector({-1, from[1]})
                                               : shape(like)(slice(0, 2));
  return reshape(y, concat({lead, dims_from(y, 1)}, 0));
}

Tensor merged_directions(const std::string& mode, const Tensor& forward, const Tensor& backward) {
  if (mode == "concat") return concat({forward, backward}, -1);
  if (mode == "sum") return forward + backward;
  if (mode == "mul") return forward * backward;
  return (forward + backward) / 2;
}

}  // namespace

void Bidirectional::prepare() {
  if (!options_.layer) throw invalid_argument("[Bidirectional] no layer was given");
  if (std::find(std::begin(kMergeModes), std::end(kMergeModes), options_.merge_mode) == std::end(kMergeModes)) {
    throw invalid_argument("[Bidirectional] merge_mode must be concat, sum, mul, ave or none, got '{}'",
                           options_.merge_mode);
  }
  const Config settings = options_.layer->get_config();
  return_sequences_ = is_set(settings, "return_sequences");
  return_state_ = is_set(settings, "return_state");
  time_major_ = is_set(settings, "time_major");
  forward_layer = add_layer("forward_layer", direction_of(*options_.layer, "forward_", false));
  backward_layer =
      add_layer("backward_layer", options_.backward_layer ? LayerPtr(options_.backward_layer)
                                                          : direction_of(*options_.layer, "backward_", true));
  if (is_set(forward_layer->get_config(), "go_backwards") == is_set(backward_layer->get_config(), "go_backwards")) {
    throw invalid_argument("[Bidirectional] layer '{}': the backward layer goes the same way as the forward one",
                           name());
  }
  set_supports_masking(true);
}

void Bidirectional::build(const PartialShape& input) {
  forward_layer->build_from_shapes(input);
  backward_layer->build_from_shapes(input);
}
void Bidirectional::build(const NestOf<PartialShape>& inputs) { build(nest::flatten(inputs).at(0)); }

Nest Bidirectional::call(const Nest& inputs, const CallArgs& args) {
  std::vector<Tensor> all = nest::flatten(inputs);
  const Nest x = all.at(0);
  std::vector<Tensor> states = all.size() > 1 ? std::vector<Tensor>(all.begin() + 1, all.end()) : args.initial_state;
  if (states.size() % 2 != 0) {
    throw invalid_argument("[Bidirectional] layer '{}': initial states are those of both directions, got {} of them",
                           name(), states.size());
  }
  const auto middle = states.begin() + static_cast<std::ptrdiff_t>(states.size() / 2);
  CallArgs forward_args = args, backward_args = args;
  forward_args.initial_state.assign(states.begin(), middle);
  backward_args.initial_state.assign(middle, states.end());
  std::vector<Tensor> forward = nest::flatten((*forward_layer)(x, forward_args));
  std::vector<Tensor> backward = nest::flatten((*backward_layer)(x, backward_args));
  // The backward layer's outputs stand in the order in which it saw the steps.
  if (return_sequences_) backward[0] = reverse(backward[0], time_major_ ? 0 : 1);

  const bool apart = options_.merge_mode == "none" || options_.merge_mode.empty();
  std::vector<Nest> out{forward[0], backward[0]};
  if (!apart) out = {merged_directions(options_.merge_mode, forward[0], backward[0])};
  if (!return_state_ && !apart) return out[0];
  if (return_state_) {
    out.insert(out.end(), forward.begin() + 1, forward.end());
    out.insert(out.end(), backward.begin() + 1, backward.end());
  }
  return Nest::list(std::move(out));
}

Tensor Bidirectional::compute_mask(const Nest&, const Tensor& mask) { return return_sequences_ ? mask : Tensor(); }

void Bidirectional::reset_states() {
  for (const LayerPtr& direction : {forward_layer, backward_layer}) {
    if (auto* recurrent = dynamic_cast<RecurrentLayer*>(direction.get())) recurrent->reset_states();
  }
}

void TimeDistributed::prepare() {
  if (!options_.layer) throw invalid_argument("[TimeDistributed] no layer was given");
  layer = add_layer("layer", LayerPtr(options_.layer));
  set_input_spec({.min_ndim = 3, .means = "[batch, steps, ...]"});
  set_supports_masking(true);
}

void TimeDistributed::build(const PartialShape& input) {
  Dims step{input[0]};
  step.insert(step.end(), input.begin() + 2, input.end());
  layer->build_from_shapes(PartialShape(step));
}

Tensor TimeDistributed::call(const Tensor& input, const CallArgs& args) {
  CallArgs inner = args;
  // A mask of the steps alone says nothing about what is in a step.
  inner.mask = args.mask.defined() && args.mask.partial_shape().rank() > 2 ? steps_as_rows(args.mask) : Tensor();
  return rows_as_steps((*layer)(steps_as_rows(input), inner), input);
}

Tensor TimeDistributed::compute_mask(const Nest& inputs, const Tensor& mask) {
  const Tensor input = nest::flatten(inputs).at(0);
  const Tensor made = layer->compute_mask(steps_as_rows(input), mask.defined() ? steps_as_rows(mask) : Tensor());
  if (made.defined()) return rows_as_steps(made, input);
  if (!mask.defined()) return {};
  Tensor any = mask;
  while (any.partial_shape().rank() > 2) any = reduce_any(any, -1);
  return any;
}

}  // namespace runnel::keras
