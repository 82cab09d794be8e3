#include "runnel/keras/layer.h"

#include <algorithm>
#include <atomic>
#include <typeinfo>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/stack.h"
#include "runnel/graph/name_scope.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/functional.h"
#include "runnel/keras/positional.h"
#include "runnel/op/composed.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

uint64_t next_layer_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

void require_stack_for(const Layer& layer) {
  if (stack_has_room()) return;
  throw make_error(Code::resource_exhausted,
                   "[{}] the calls of layer '{}' inside one another have used up the stack: a layer that calls itself "
                   "must come to an end",
                   layer.class_name(), layer.name());
}

std::string shapes_text(const Nest& inputs) {
  std::string text;
  for (const Tensor& t : nest::flatten(inputs)) {
    text += (text.empty() ? "" : ", ") + (t.defined() ? dtype_name(t.dtype()) + t.partial_shape().str() : "nothing");
  }
  return text;
}

}  // namespace

void detail::argument_given_twice(const char* class_name) {
  throw invalid_argument("[{}] a setting is given twice: as the main argument and by its name. Leave one out",
                         class_name);
}

Layer::Layer(LayerOptions options)
    : name_(std::move(options.name)),
      policy_(options.dtype.defined() ? std::move(options.dtype) : mixed_precision::global_policy()),
      batch_input_shape_(std::move(options.batch_input_shape)),
      id_(next_layer_id()),
      trainable_(options.trainable),
      made_in_(outermost_traced_graph()) {
  if (const CallScope* call = CallScope::current()) made_in_call_ = call->number();
}

Layer::Layer(Layer* parent, const std::string& attribute, LayerOptions options) : Layer(std::move(options)) {
  join(parent, attribute);
}

void Layer::join(Layer* parent, const std::string& attribute) {
  if (!parent) {
    throw invalid_argument(
        "[Layer] the layer '{0}' is a member of nothing: {{nullptr, \"{0}\"}}. Write {{this, \"{0}\"}}", attribute);
  }
  parent->track(attribute, *this);
}

Layer::Layer(Layer&& other) noexcept(false)
    : Trackable((other.check_movable(), std::move(other))),
      std::enable_shared_from_this<Layer>(),
      name_(std::move(other.name_)),
      policy_(std::move(other.policy_)),
      batch_input_shape_(std::move(other.batch_input_shape_)),
      id_(std::exchange(other.id_, next_layer_id())),
      trainable_(other.trainable_),
      trainable_is_new_(other.trainable_is_new_),
      built_(std::exchange(other.built_, false)),
      prepared_(std::exchange(other.prepared_, false)),
      supports_masking_(other.supports_masking_),
      autocast_(other.autocast_),
      names_weights_(other.names_weights_),
      moved_from_(std::exchange(other.moved_from_, true)),
      made_in_call_(other.made_in_call_),
      made_in_(std::move(other.made_in_)),
      rules_(std::move(other.rules_)),
      activity_regularizer_(std::move(other.activity_regularizer_)),
      input_spec_(std::move(other.input_spec_)) {}

Layer& Layer::operator=(Layer&& other) noexcept(false) {
  if (this == &other) return *this;
  Trackable::operator=(static_cast<Trackable&&>(other));
  CallLosses::forget(id_);
  id_ = std::exchange(other.id_, next_layer_id());
  name_ = std::move(other.name_);
  policy_ = std::move(other.policy_);
  batch_input_shape_ = std::move(other.batch_input_shape_);
  trainable_ = other.trainable_;
  trainable_is_new_ = other.trainable_is_new_;
  built_ = std::exchange(other.built_, false);
  prepared_ = std::exchange(other.prepared_, false);
  supports_masking_ = other.supports_masking_;
  autocast_ = other.autocast_;
  names_weights_ = other.names_weights_;
  moved_from_ = std::exchange(other.moved_from_, true);
  made_in_call_ = other.made_in_call_;
  made_in_ = std::move(other.made_in_);
  rules_ = std::move(other.rules_);
  activity_regularizer_ = std::move(other.activity_regularizer_);
  input_spec_ = std::move(other.input_spec_);
  return *this;
}

Layer::~Layer() { CallLosses::forget(id_); }

const std::string& Layer::name() const {
  if (name_.empty()) name_ = unique_name(to_snake_case(class_name()));
  return name_;
}

// --- calls ---

Tensor Layer::operator()(const Tensor& input, const CallArgs& args, SourceSite where) {
  return composed(where, [&] {
    const Nest out = run(Nest(input), args);
    if (out.is_leaf()) return out.leaf();
    throw invalid_argument(
        "[{0}] layer '{1}' gives {2}, not one tensor. Call it with a Nest, which returns all of them: const Nest out = "
        "{1}(Nest(x)); Tensor first = out[0].leaf()",
        class_name(), name(), nest::detail::describe(out.kind(), out.size(), out.keys()));
  });
}
Nest Layer::operator()(const Nest& inputs, const CallArgs& args, SourceSite where) {
  return composed(where, [&] { return run(inputs, args); });
}
Predictions Layer::operator()(std::initializer_list<NestArg> inputs, const CallArgs& args, SourceSite where) {
  return composed(where, [&] { return run(NestArg(inputs), args); });
}

Tensor Layer::call(const Tensor& input, const CallArgs& args) {
  CallScope* scope = CallScope::current();
  if (scope && std::exchange(scope->asked_other_call, true)) {
    throw make_error(Code::unimplemented, "[{}] the layer has no `call`: override one of the two", name());
  }
  return call(Nest(input), args).leaf();
}

Nest Layer::call(const Nest& inputs, const CallArgs& args) {
  CallScope* scope = CallScope::current();
  if (scope && std::exchange(scope->asked_other_call, true)) {
    throw make_error(Code::unimplemented, "[{}] the layer has no `call`: override one of the two", name());
  }
  if (!inputs.is_leaf()) {
    throw invalid_argument("[{}] the layer takes one tensor, got {}: {}", name(),
                           nest::detail::describe(inputs.kind(), inputs.size(), inputs.keys()), shapes_text(inputs));
  }
  return call(inputs.leaf(), args);
}

Tensor Layer::compute_mask(const Nest&, const Tensor& mask) { return supports_masking_ ? mask : Tensor(); }

Nest Layer::run(const Nest& given, const CallArgs& args) {
  require_stack_for(*this);
  refuse_moved_from();
  if (is_described(given)) return record_call(*this, given, args);
  ensure_prepared();
  const ReopenedScope scope_of_names(name());
  const auto to_compute_dtype = [&](const Tensor& t) {
    if (!autocast_ || !t.defined() || !is_float(t.dtype()) || t.dtype() == compute_dtype()) return t;
    const Tensor brought = cast(t, compute_dtype());
    if (const Tensor mask = MaskScope::mask_of(t); mask.defined()) MaskScope::set_mask(brought, mask);
    return brought;
  };
  const Nest inputs = nest::map_structure(to_compute_dtype, given);
  check_inputs(inputs);  // before the weights are made, for what is known by then
  if (!built_) {
    build_for(inputs);
    check_inputs(inputs);
  }
  if (!made_in_.expired()) tell_of_new_weights();

  const CallScope scope(*this, args.training);
  CallArgs told = args;
  told.training = scope.training();
  if (!told.mask.defined()) {
    for (const Tensor& t : nest::flatten(given)) {
      if (!told.mask.defined() && t.defined()) told.mask = MaskScope::mask_of(t);
    }
  }
  if (!scope.outer()) {
    forget_losses();
  } else if (const std::atomic_ref known(place_known_); !known.load(std::memory_order_relaxed)) {
    known.store(true, std::memory_order_relaxed);
    look_for_place(scope.outermost());
  }
  try {
    Nest out = call(inputs, told);
    if (out.is_leaf() && !out.leaf().defined()) {
      throw make_error(Code::failed_precondition,
                       "[{}] the `call` of layer '{}' returned a tensor without a value: a Tensor that was never "
                       "assigned? Return the result",
                       class_name(), name());
    }
    if (activity_regularizer_) regularize_activity(out);
    const Tensor mask = compute_mask(inputs, told.mask);
    if (mask.defined()) {
      for (const Tensor& t : nest::flatten(out)) MaskScope::set_mask(t, mask);
    }
    return out;
  } catch (const Error& e) {
    if (e.has_frame(ErrorFrame::Kind::layer)) throw;  // the innermost is named
    throw e.inside(
        {.kind = ErrorFrame::Kind::layer, .name = name(), .type = class_name(), .detail = shapes_text(inputs)});
  }
}

void Layer::ensure_prepared() {
  if (prepared_) return;
  const OutsideTrace outside;  // what it makes outlives the trace, as weights do
  static_cast<void>(name());   // chosen now: later calls come from many threads
  prepare();
  prepared_ = true;
}

void Layer::build_for(const Nest& inputs) {
  build_from_shapes(nest::map_structure([](const Tensor& t) { return t.partial_shape(); }, inputs));
}

void Layer::build_from_shapes(const NestOf<PartialShape>& shapes, SourceSite where) {
  composed(where, [&] {
    require_stack_for(*this);
    refuse_moved_from();
    if (built_) return;
    ensure_prepared();
    const OutsideTrace outside;  // weights are values, whatever is being traced or recorded
    const CallScope scope(*this, std::nullopt);
    const size_t num_edges = edges().size(), num_rules = rules_.size();
    const InputSpec spec = input_spec_;
    try {
      if (shapes.is_leaf()) {
        build(shapes.leaf());
      } else {
        build(shapes);
      }
    } catch (...) {  // the next call tries anew: what was made so far must not stand in its way
      while (edges().size() > num_edges) untrack(std::string(edges().back().name));
      rules_.resize(num_rules);
      input_spec_ = spec;
      throw;
    }
    built_ = true;
  });
}

void Layer::build(const PartialShape&) {}
void Layer::build(const NestOf<PartialShape>&) {}

PartialShape Layer::compute_output_shape(const PartialShape& input, SourceSite where) {
  return composed(where, [&] {
    const NestOf<TensorSpec> out = infer_outputs(*this, NestOf<TensorSpec>(TensorSpec{input, compute_dtype(), ""}), {});
    return out.leaf().shape;
  });
}

Config Layer::get_config() const {
  refuse_moved_from();
  Config::Map entries{{"name", name()}, {"trainable", trainable_}, {"dtype", policy_.config()}};
  if (batch_input_shape_.has_rank()) entries.emplace_back("batch_input_shape", batch_input_shape_);
  return entries;
}

std::string Layer::class_name() const { return class_name_of(typeid(*this)); }

LayerOptions layer_options_from_config(const Config& config) {
  LayerOptions options;
  read_fields(options, layer_fields<LayerOptions>(), config);
  return options;
}

}  // namespace runnel::keras
