#include "runnel/compat/v1_graph.h"

#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/base/moved_from.h"
#include "runnel/graph/gradient/gradient.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel::compat::v1 {

// A scope of as_default(): ops of the thread go into its graph.
struct OpenGraph {
  explicit OpenGraph(GraphState& state)
      : state(state), outer(thread_context().graph), scope_(&state.tracer, nullptr, new_tape_level(), this) {}
  GraphState& state;
  OpenGraph* outer;

 private:
  ContextScope<&ThreadContext::interceptor, &ThreadContext::recorder, &ThreadContext::tape_level, &ThreadContext::graph>
      scope_;
};

namespace {

// The graph that stands under the open scopes of this thread.
struct Defaults {
  std::shared_ptr<GraphState> base;
  std::unique_ptr<Graph::Scope> forever;  // of disable_eager_execution
};
Defaults& defaults() {
  static thread_local Defaults d;
  return d;
}

std::shared_ptr<GraphState> default_state() {
  if (const OpenGraph* open = thread_context().graph) return open->state.shared_from_this();
  Defaults& d = defaults();
  if (!d.base) d.base = std::make_shared<GraphState>();
  return d.base;
}

std::vector<Variable> variables_of(GraphState& state, bool trainable_only) {
  state.declare_captured();
  std::vector<Variable> all;
  for (const auto& each : state.variables) {
    if (!trainable_only || each.variable.trainable()) all.push_back(each.variable);
  }
  return all;
}

// Do ops go into the body of a branch, a loop or a function of the graph?
bool is_inside_block(const GraphState& state) { return thread_context().interceptor != &state.tracer; }

// A read that comes after the newest node. Bodies keep the order of effects by themselves.
Tensor read_after_last(GraphState& state, const Variable& variable) {
  if (is_inside_block(state)) return variable.value();
  state.tracer.dependencies.push_back({state.graph()->nodes().back().get()});
  const Tensor value = variable.value();
  state.tracer.dependencies.pop_back();
  return value;
}

}  // namespace

void GraphTracer::call(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
                       const SourceSite& where) {
  Tracer::call(op, inputs, attrs, outputs, num_outputs, where);
  Node& node = *graph()->nodes().back();
  std::erase_if(node.control_inputs, [&](const Node* before) { return !ordered_from || before->id < *ordered_from; });
  for (const std::vector<Node*>& scope : dependencies) {
    for (Node* before : scope) {
      if (std::ranges::find(node.control_inputs, before) == node.control_inputs.end()) {
        node.control_inputs.push_back(before);
      }
    }
  }
}

GraphState& current_state(const char* caller) {
  const OpenGraph* open = thread_context().graph;
  if (!open) {
    throw make_error(Code::failed_precondition,
                     "[{}] ops run eagerly here: call disable_eager_execution() first, or keep a Graph::as_default()",
                     caller);
  }
  return open->state;
}

GraphState& building_state(const char* caller) {
  GraphState& state = current_state(caller);
  if (is_inside_block(state)) {
    throw make_error(Code::failed_precondition,
                     "[{}] this is the body of a branch, a loop or a function, which has a graph of its own: call it "
                     "outside, in the graph of as_default()",
                     caller);
  }
  return state;
}

void GraphState::declare_captured() {
  const auto slot_of = [](const Tensor& t) -> const VariableSlot* {
    if (t.dtype() != DType::resource || t.is_symbolic()) return nullptr;
    return referred_as<const VariableSlot>(t);
  };
  std::vector<Variable> found;
  for (const Tensor& t : tracer.captures()) {
    const VariableSlot* slot = slot_of(t);
    const auto is_it = [&](const Declared& each) { return &each.variable.slot() == slot; };
    if (slot && std::ranges::none_of(variables, is_it)) found.push_back(Variable::from_handle(t));
  }
  if (found.empty()) return;
  const Graph::Scope scope(shared_from_this());
  for (const Variable& variable : found) declare(variable, variable.slot().value);
}

void GraphState::declare(const Variable& variable, const Tensor& initial_value) {
  variable.assign(initial_value);
  name_last(variable.name() + "/Assign");
  const Operation initializer = last();
  const Tensor read = variable.value();
  name_last(variable.name() + "/Read");
  name(*tracer.captured_as(variable.handle()), variable.name());
  variables.push_back({variable, initializer, read});
}

void GraphState::set_initial_value(const Variable& variable, const Tensor& value) {
  declared(variable);  // an Error where it is none of this graph
  variable.assign(value);
  name_last(variable.name() + "/Assign");
  for (Declared& each : variables) {
    if (&each.variable.slot() == &variable.slot()) each.initializer = last();
  }
}

const GraphState::Declared& GraphState::declared(const Variable& variable) {
  declare_captured();
  for (const Declared& each : variables) {
    if (&each.variable.slot() == &variable.slot()) return each;
  }
  throw invalid_argument(
      "[compat.v1] '{}' is no variable of this graph: get_variable makes those, and a layer that was called there",
      variable.name());
}

NodeOutput GraphState::output_of(const Tensor& tensor) const {
  const NodeSymbol* symbol = tensor.defined() ? node_symbol(tensor) : nullptr;
  if (!symbol) {
    throw invalid_argument("[compat.v1] a tensor of the graph is needed, got {}",
                           tensor.defined() ? "a value: " + tensor.repr() : "nothing");
  }
  if (symbol->graph() != graph()) {
    throw invalid_argument("[compat.v1] '{}' is of another graph", symbol->output().node->name);
  }
  return symbol->output();
}

NodeOutput GraphState::fetched(const Fetch& fetch) {
  if (fetch.variable_.defined()) return output_of(declared(fetch.variable_).read);
  if (!fetch.operation_.defined()) return output_of(fetch.tensor_);
  if (fetch.operation_.graph_ != graph()) {
    throw invalid_argument("[compat.v1] '{}' is of another graph", fetch.operation_.name());
  }
  return {fetch.operation_.node_, -1};
}

const Node& Operation::node(const SourceSite& where) const {
  if (!node_) throw at_line(make_error(Code::failed_precondition, "[Operation] this one is no node of a graph"), where);
  return *node_;
}
const std::string& Operation::name(SourceSite where) const { return node(where).name; }
const std::string& Operation::type(SourceSite where) const { return node(where).op->name; }

Operation operation_of(const Tensor& tensor, SourceSite where) {
  return composed(where, [&] {
    const NodeSymbol* symbol = tensor.defined() ? node_symbol(tensor) : nullptr;
    if (!symbol) throw invalid_argument("[compat.v1] the tensor is of no graph");
    return Operation(symbol->graph(), symbol->output().node);
  });
}

Graph::Graph() : state_(std::make_shared<GraphState>()) {}

Graph::Scope::Scope(std::shared_ptr<GraphState> state)
    : state_(std::move(state)), open_(std::make_unique<OpenGraph>(*state_)) {}
Graph::Scope::~Scope() = default;

const std::shared_ptr<GraphState>& Graph::state(const SourceSite& where) const {
  if (!state_) throw_moved_from("Graph", where);
  return state_;
}

std::vector<std::string> Graph::operations(SourceSite where) const {
  std::vector<std::string> names;
  for (const auto& node : state(where)->graph()->nodes()) names.push_back(node->name);
  return names;
}
std::vector<Variable> Graph::global_variables(SourceSite where) const { return variables_of(*state(where), false); }
std::vector<Variable> Graph::trainable_variables(SourceSite where) const { return variables_of(*state(where), true); }
std::string Graph::to_graph_def(SourceSite where) const {
  return composed(where, [&] { return state()->graph()->to_graph_def(); });
}
std::string Graph::to_text(SourceSite where) const { return state(where)->graph()->to_text(); }

void disable_eager_execution(SourceSite where) {
  composed(where, [&] {
    Defaults& d = defaults();
    if (d.forever) return;
    if (thread_context().graph || thread_context().interceptor) {
      throw make_error(Code::failed_precondition,
                       "[disable_eager_execution] a scope of as_default() or a trace is open: call it at the program's "
                       "beginning");
    }
    if (!d.base) d.base = std::make_shared<GraphState>();
    d.forever = std::make_unique<Graph::Scope>(d.base);
  });
}
bool executing_eagerly() { return !thread_context().graph; }
Graph get_default_graph() { return Graph(default_state()); }
void reset_default_graph(SourceSite where) {
  composed(where, [&] {
    Defaults& d = defaults();
    const OpenGraph* open = thread_context().graph;
    if (open && !(d.forever && !open->outer)) {
      throw make_error(Code::failed_precondition, "[reset_default_graph] a scope of as_default() is open");
    }
    const bool disabled = d.forever != nullptr;
    d.forever.reset();
    d.base = std::make_shared<GraphState>();
    if (disabled) disable_eager_execution(SourceSite());
  });
}

Tensor placeholder(DType dtype, const PartialShape& shape, const std::string& name, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = building_state("placeholder");
    const Tensor t = call_op("Placeholder", {}, {{"dtype", dtype}, {"shape", shape}})[0];
    if (name != "Placeholder") state.name_last(name);
    return t;
  });
}

Initializer zeros_initializer() {
  return [](const Shape& shape, DType dtype) { return zeros(shape, dtype); };
}
Initializer ones_initializer() {
  return [](const Shape& shape, DType dtype) { return ones(shape, dtype); };
}
Initializer constant_initializer(double value) {
  return [value](const Shape& shape, DType dtype) { return fill(shape, Operand(value).as(dtype)); };
}
Initializer random_normal_initializer(double mean, double stddev) {
  return [=](const Shape& shape, DType dtype) { return random::normal(shape, mean, stddev, dtype); };
}
Initializer truncated_normal_initializer(double mean, double stddev) {
  return [=](const Shape& shape, DType dtype) { return random::truncated_normal(shape, mean, stddev, dtype); };
}
Initializer glorot_uniform_initializer() {
  return [](const Shape& shape, DType dtype) {
    // The last two dimensions are inputs and outputs, those before them a window that both see.
    double fan_in = 1;
    double fan_out = 1;
    if (shape.rank() == 1) fan_in = fan_out = static_cast<double>(shape[0]);
    if (shape.rank() > 1) {
      double window = 1;
      for (int i = 0; i < shape.rank() - 2; ++i) window *= static_cast<double>(shape[i]);
      fan_in = window * static_cast<double>(shape[shape.rank() - 2]);
      fan_out = window * static_cast<double>(shape[shape.rank() - 1]);
    }
    const double limit = std::sqrt(6.0 / std::max(1.0, fan_in + fan_out));
    return random::uniform(shape, -limit, limit, dtype);
  };
}

VariableScope::VariableScope(const std::string& name, const VariableScopeOptions& options, SourceSite where)
    : state_(at_caller(where, [] { return current_state("variable_scope").shared_from_this(); })) {
  auto& scopes = state_->variable_scopes;
  const bool inside = !scopes.empty();
  scopes.push_back(
      {(inside ? scopes.back().prefix : "") + name + "/", options.reuse || (inside && scopes.back().reuse)});
}
VariableScope::~VariableScope() { state_->variable_scopes.pop_back(); }

Variable get_variable(const std::string& name, const Shape& shape, const GetVariable& options, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = current_state("get_variable");
    const bool scoped = !state.variable_scopes.empty();
    const bool reuse = scoped && state.variable_scopes.back().reuse;
    const std::string full_name = (scoped ? state.variable_scopes.back().prefix : "") + name;
    for (const auto& each : state.variables) {
      const VariableSlot& slot = each.variable.slot();
      if (slot.name != full_name) continue;
      if (!reuse) {
        throw make_error(Code::already_exists, "[get_variable] the graph has a variable '{}' already", full_name);
      }
      if (slot.dtype != options.dtype || !(slot.shape == PartialShape(shape))) {
        throw invalid_argument("[get_variable] '{}' is {}{} and cannot be reused as {}{}", full_name,
                               dtype_name(slot.dtype), slot.shape.str(), dtype_name(options.dtype), shape.str());
      }
      return each.variable;
    }
    if (reuse) throw make_error(Code::not_found, "[get_variable] there is no variable '{}' to reuse", full_name);
    Tensor handle = Tensor::empty(DType::resource, {});
    handle.mutable_data<ResourceHandle>()->object =
        std::make_shared<VariableSlot>(full_name, options.dtype, PartialShape(shape), options.trainable);
    const Variable variable = Variable::from_handle(handle);
    const Initializer init = options.initializer       ? options.initializer
                             : is_float(options.dtype) ? glorot_uniform_initializer()
                                                       : zeros_initializer();
    // Also where a branch or a loop asks for it, the variable belongs to the graph.
    std::optional<Graph::Scope> root;
    if (is_inside_block(state)) root.emplace(state.shared_from_this());
    state.declare(variable, init(shape, options.dtype));
    return variable;
  });
}

PartitionedVariable get_variable(const std::string& name, const Shape& shape, const GetVariable& options,
                                 const Partitioner& partitioner, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = current_state("get_variable");
    const int axis = normalize_axis(partitioner.axis, shape.rank());
    const int64_t size = shape[axis];
    const int64_t parts = std::min<int64_t>(partitioner.num_shards, size);
    if (parts < 1) {
      throw invalid_argument("[get_variable] '{}' of shape {} cannot be cut into {} parts along axis {}", name,
                             shape.str(), partitioner.num_shards, axis);
    }
    const Initializer init = options.initializer       ? options.initializer
                             : is_float(options.dtype) ? glorot_uniform_initializer()
                                                       : zeros_initializer();
    PartitionedVariable result;
    result.shape_ = shape;
    result.axis_ = axis;
    // The parts are those of one initial value, which is made once.
    Tensor whole;
    int64_t start = 0;
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t length = size / parts + (i < size % parts ? 1 : 0);
      Dims dims = shape.dims(), begin(dims.size(), 0);
      dims[static_cast<size_t>(axis)] = length;
      begin[static_cast<size_t>(axis)] = start;
      const auto slice_of_whole = [&](const Shape& part, DType dtype) {
        if (!whole.defined()) whole = init(shape, dtype);
        return slice(whole, Tensor::of<int64_t>({begin.begin(), begin.end()}),
                     Tensor::of<int64_t>({part.begin(), part.end()}));
      };
      GetVariable part_options = options;
      part_options.initializer = slice_of_whole;
      const Variable part = get_variable(fmt::format("{}/part_{}", name, i), Shape(dims), part_options);
      result.parts_.push_back(part);
      result.name_ = part.name().substr(0, part.name().rfind("/part_"));
      io::CheckpointSlice place(dims.size());
      for (size_t d = 0; parts > 1 && d < dims.size(); ++d) place[d] = {begin[d], dims[d]};
      state.parts[&part.slot()] = {result.name_, shape, place};
      start += length;
    }
    return result;
  });
}

Tensor PartitionedVariable::as_tensor(SourceSite where) const {
  return composed(where, [&] {
    std::vector<Tensor> values;
    for (const Variable& part : parts_) values.push_back(part.value());
    return values.size() == 1 ? values[0] : concat(values, axis_);
  });
}

Tensor assign(const Variable& variable, const Operand& value) {
  return composed(value.where(), [&] {
    GraphState& state = current_state("assign");
    variable.assign(value);
    return read_after_last(state, variable);
  });
}
Tensor assign_add(const Variable& variable, const Operand& delta) {
  return composed(delta.where(), [&] {
    GraphState& state = current_state("assign_add");
    variable.assign_add(delta);
    return read_after_last(state, variable);
  });
}
Tensor assign_sub(const Variable& variable, const Operand& delta) {
  return composed(delta.where(), [&] {
    GraphState& state = current_state("assign_sub");
    variable.assign_sub(delta);
    return read_after_last(state, variable);
  });
}

std::vector<Variable> global_variables() { return variables_of(*default_state(), false); }
std::vector<Variable> trainable_variables() { return variables_of(*default_state(), true); }

Operation no_op(const std::string& name, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = building_state("no_op");
    call_op("NoOp", {});
    if (name != "NoOp") state.name_last(name);
    return state.last();
  });
}
Operation group(const std::vector<Fetch>& operations, const std::string& name, SourceSite where) {
  return composed(where, [&] {
    const ControlDependencies after(operations);
    return no_op(name);
  });
}
Operation updates(const std::function<void()>& changes, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = building_state("updates");
    const auto& nodes = state.graph()->nodes();
    const std::optional<int> outer = state.tracer.ordered_from;
    const int first = static_cast<int>(nodes.size());
    state.tracer.ordered_from = outer.value_or(first);
    try {
      changes();
    } catch (...) {
      state.tracer.ordered_from = outer;
      throw;
    }
    state.tracer.ordered_from = outer;
    std::vector<Fetch> made;
    for (size_t i = static_cast<size_t>(first); i < nodes.size(); ++i) {
      if (has_side_effect(*nodes[i])) made.emplace_back(state.operation(nodes[i].get()));
    }
    return group(made, "updates");
  });
}
Operation variables_initializer(const std::vector<Variable>& variables, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = building_state("variables_initializer");
    std::vector<Fetch> all;
    for (const Variable& v : variables) all.emplace_back(state.declared(v).initializer);
    return group(all, "init");
  });
}
Operation global_variables_initializer(SourceSite where) { return variables_initializer(global_variables(), where); }

ControlDependencies::ControlDependencies(const std::vector<Fetch>& before, SourceSite where)
    : state_(at_caller(where, [] { return building_state("control_dependencies").shared_from_this(); })) {
  composed(where, [&] {
    std::vector<Node*> nodes;
    for (const Fetch& each : before) nodes.push_back(state_->fetched(each).node);
    state_->tracer.dependencies.push_back(std::move(nodes));
  });
}
ControlDependencies::~ControlDependencies() { state_->tracer.dependencies.pop_back(); }

std::vector<Gradient> gradients(const Tensor& y, const std::vector<Variable>& xs, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = building_state("gradients");
    const NodeOutput target = state.output_of(y);
    const std::vector<Node*> inputs = state.graph()->inputs();
    std::vector<int> input_of;  // per variable, -1 where the graph does not use it
    std::vector<bool> needed(inputs.size(), false);
    for (const Variable& x : xs) {
      const auto at = std::ranges::find(inputs, state.tracer.captured_as(x.handle()));
      input_of.push_back(at == inputs.end() ? -1 : static_cast<int>(at - inputs.begin()));
      if (at != inputs.end()) needed[static_cast<size_t>(input_of.back())] = true;
    }
    const BackwardGraph backward = build_backward(state.graph(), {target}, {true}, needed);
    std::vector<Tensor> args(backward.dy_of.size(), ones_like(y));
    args.insert(args.end(), backward.captures.begin(), backward.captures.end());
    const std::vector<Tensor> values = replay(*backward.graph, args);
    std::vector<Gradient> by_input;
    size_t at = 0;
    for (const Derivative::Kind kind : backward.result) {
      switch (kind) {
        case Derivative::Kind::none: by_input.emplace_back(); break;
        case Derivative::Kind::dense: by_input.emplace_back(values[at++]); break;
        case Derivative::Kind::slices:
          by_input.emplace_back(IndexedSlices{values[at], values[at + 1], values[at + 2]});
          at += 3;
          break;
      }
    }
    std::vector<Gradient> result;
    for (int i : input_of) result.push_back(i < 0 ? Gradient() : by_input[static_cast<size_t>(i)]);
    return result;
  });
}

}  // namespace runnel::compat::v1
