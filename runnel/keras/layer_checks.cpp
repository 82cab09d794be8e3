// What a layer finds wrong with a call: inputs that do not fit it, and layers that were made or registered as they
// should not be.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/layer.h"
#include "runnel/op/composed.h"

namespace runnel::keras {

void Layer::check_inputs(const Nest& inputs) const {
  if (inputs.is_leaf() && inputs.leaf().defined()) check_shape(inputs.leaf().partial_shape());
}

void Layer::check_shape(const PartialShape& input) const {
  const InputSpec& spec = input_spec_;
  if (!input.has_rank()) return;
  const auto refuse = [&](const std::string& expected) {
    const bool too_few = input.rank() < std::max(spec.ndim, spec.min_ndim);
    throw invalid_argument("[{}] input of layer '{}' ({}) is incompatible with it: expected {}{}{}, found shape {}{}",
                           class_name(), name(), class_name(), expected, spec.means.empty() ? "" : ", ", spec.means,
                           input.str(), too_few && !spec.means.empty() ? ": add a dimension with expand_dims" : "");
  };
  if (spec.ndim >= 0 && input.rank() != spec.ndim) refuse(fmt::format("{} dimensions", spec.ndim));
  if (spec.min_ndim >= 0 && input.rank() < spec.min_ndim) refuse(fmt::format("at least {} dimensions", spec.min_ndim));
  for (const auto& [axis, size] : spec.axes) {
    const int at = axis < 0 ? axis + input.rank() : axis;
    if (at < 0 || at >= input.rank() || (input[at] != kUnknownDim && input[at] != size)) {
      refuse(fmt::format("size {} at axis {}", size, axis));
    }
  }
}

void Layer::refuse_moved_from() const {
  if (!moved_from_) return;
  const std::string kind = class_name();
  throw make_error(Code::failed_precondition,
                   "[{0}] this {0} was moved from: what it was is now the object that it was moved into. Use that one, "
                   "or assign another {0} to this",
                   kind);
}

int64_t Layer::known_dim(const PartialShape& shape, int axis, SourceSite where) const {
  return composed(where, [&]() -> int64_t {
    const int at = axis < 0 && shape.has_rank() ? axis + shape.rank() : axis;
    if (!shape.has_rank() || at < 0 || at >= shape.rank() || shape[at] == kUnknownDim) {
      throw invalid_argument(
          "[{}] layer '{}' needs the size of dimension {} of its input to make its weights; it is not "
          "known: the input is {}",
          class_name(), name(), axis, shape.str());
    }
    return shape[at];
  });
}

// What a layer calls is trained and saved with it only if it is registered.
void Layer::look_for_place(const Layer& outermost) {
  const std::vector<const Layer*> registered = outermost.all_layers();
  if (!trainable_ || std::ranges::find(registered, this) != registered.end()) return;
  if (StrayVariables::add(weights()).empty()) return;
  if (made_in_call_ == CallScope::current()->number()) {
    if (!StrayVariables::first_made_in(outermost.id_, class_name())) return;
    log_warning(
        "[{0}] layer '{1}' was made inside of the call of '{2}' and is no part of it: what is made there has new "
        "weights in every call, and is neither trained nor saved. Make it once, in the constructor: a member as {0} "
        "{3}{{this, \"{3}\", ...}}, or one held by shared_ptr with track(\"{3}\", {3}){4}",
        class_name(), name(), outermost.name(), to_snake_case(class_name()), user_line({}).at());
    return;
  }
  log_warning(
      "[{0}] layer '{1}' is called in '{2}', but is no part of it: its weights are not trained and saved with '{2}'. "
      "Register it: a member as {0} {3}{{this, \"{3}\", ...}}, one held by shared_ptr with track(\"{3}\", {3}){4}",
      class_name(), name(), outermost.name(), to_snake_case(class_name()), user_line({}).at());
}

// As with variables: a function may make weights when it is first traced, not whenever it is traced.
void Layer::tell_of_new_weights() {
  if (made_in_.lock() != outermost_traced_graph() || weights().empty()) return;
  made_in_.reset();
  Tracer* tracer = Tracer::current();
  if (!tracer) return;
  try {
    tracer->variable_created(name());
  } catch (const Error& e) {
    throw e.reworded(fmt::format(
        "[{0}] layer '{1}' is made in the function '{2}', with new weights whenever that is traced: a function makes "
        "layers on its first call only. Make the layer outside of the function, as a member of the model ({0} "
        "{3}{{this, \"{3}\", ...}}), or only where there is none yet",
        class_name(), name(), tracer->graph()->name(), to_snake_case(class_name())));
  }
}

}  // namespace runnel::keras
