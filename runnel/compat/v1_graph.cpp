#include "runnel/compat/v1_graph.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/moved_from.h"
#include "runnel/graph/gradient/gradient.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
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

bool is_inside_block(const GraphState& state) { return thread_context().interceptor != &state.tracer; }

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
