#include "runnel/graph/tracer.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/name_scope.h"
#include "runnel/graph/partial_values.h"
#include "runnel/op/builder.h"
#include "runnel/op/owned_symbol.h"
#include "runnel/tensor/handle.h"

namespace runnel {
namespace {

constexpr int64_t kSmallValue = 256;  // elements; shape arithmetic is smaller
constexpr int kMostNested = 256;      // bodies inside one another: every op of the innermost costs a step for each

// What TensorFlow calls the scope of a block, by the name of its body or by the op that its node has.
const char* block_scope_of_body(std::string_view name) {
  if (name.starts_with("while")) return "while";
  if (name.starts_with("if_") || name.starts_with("cond_")) return "cond";
  if (name == "case") return "switch_case/indexed_case";
  return nullptr;
}
const char* block_scope_of_op(std::string_view op) {
  if (op == "While" || op == "StatelessWhile") return "while";
  if (op == "If" || op == "StatelessIf") return "cond";
  if (op == "Case" || op == "StatelessCase") return "switch_case/indexed_case";
  return nullptr;
}

// Handles to one object are one value.
const void* resource_key(const Tensor& t) {
  const Object* object = referred_object(t);
  return object ? static_cast<const void*>(object) : t.impl().get();
}

}  // namespace

std::string NodeSymbol::described() const {
  const Node& node = *output_.node;
  if (node.is("_Arg")) return fmt::format("it is input '{}' of graph '{}'", node.name, graph_->name());
  return fmt::format("it is what '{}' gives in graph '{}'{}", node.name, graph_->name(), node.where.at());
}

const NodeSymbol* node_symbol(const Tensor& t) {
  return t.is_symbolic() ? dynamic_cast<const NodeSymbol*>(t.impl()->symbol.get()) : nullptr;
}

Tensor symbolic(const std::shared_ptr<Graph>& graph, NodeOutput output) {
  return Tensor(make_ref<TensorImpl>(output.node->dtype(output.index), std::make_shared<NodeSymbol>(graph, output)));
}

Tracer::Tracer(const std::string& name, Tracer* parent)
    : graph_(std::make_shared<Graph>(parent ? parent->child_name(name) : name)),
      parent_(parent),
      epoch_(detail::trace_epoch.fetch_add(1, std::memory_order_relaxed) + 1) {
  if (parent_) {
    depth_ = parent_->depth_ + 1;
    if (depth_ > kMostNested) {
      throw make_error(
          Code::resource_exhausted,
          "[{}] bodies of conditionals, loops and functions stand more than {} deep inside one another, which is the "
          "most that can be traced. The usual cause is a function that calls itself without end: what calls itself "
          "must come to an end that tracing sees, or be written as while_loop",
          outermost().graph_->name(), kMostNested);
    }
    epoch_ = parent_->epoch_;  // what the enclosing function made is a constant here too
    allow_variables = parent_->allow_variables;
    graph_->plan_options = parent_->graph_->plan_options;
    // The name is taken once the block is whole: its bodies, traced one after the other, share it.
    if (const char* block = block_scope_of_body(name)) {
      scope_ = parent_->graph_->free_name(in_name_scope(block));
    } else {
      scope_ = current_name_scope();
    }
  }
}

Tracer& Tracer::outermost() {
  Tracer* t = this;
  while (t->parent_) t = t->parent_;
  return *t;
}

// Functions below one function have names of their own.
std::string Tracer::child_name(const std::string& name) {
  Tracer& root = outermost();
  return fmt::format("{}_{}_{}", root.graph_->name(), name, root.children_++);
}

Tracer::Tracer(std::shared_ptr<Graph> graph, std::shared_ptr<Graph> source)
    : graph_(std::move(graph)),
      parent_(nullptr),
      source_(std::move(source)),
      epoch_(detail::trace_epoch.fetch_add(1, std::memory_order_relaxed) + 1) {}

Tracer::~Tracer() {
  for (const Ref<TensorImpl>& stand_in : void_at_end_) {
    stand_in->dtype = DType::invalid;
    stand_in->symbol.reset();
  }
}

void Tracer::void_at_end(const Tensor& stand_in) { outermost().void_at_end_.push_back(stand_in.impl()); }

void Tracer::open() {
  open_.emplace(this, nullptr, new_tape_level());
  open_scope_.emplace(&scope_);
}
void Tracer::close() {
  open_scope_.reset();
  open_.reset();
}

Tracer* Tracer::current() { return static_cast<Tracer*>(current_interceptor()); }

Tensor Tracer::add_parameter(DType dtype, const PartialShape& shape, const std::string& name) {
  return symbolic(graph_, {graph_->add_input(dtype, shape, name), 0});
}

Node* Tracer::capture(const Tensor& t) {
  Node* node = graph_->add_input(t.dtype(), t.partial_shape());
  captures_.push_back(t);
  return node;
}

NodeOutput Tracer::localise(const Tensor& t, const SourceSite& where) {
  if (const NodeSymbol* s = node_symbol(t)) {
    if (s->graph() == graph_) return s->output();
    bool ours = s->graph() == source_;
    for (Tracer* p = parent_; p && !ours; p = p->parent_) ours = p->graph_ == s->graph() || p->source_ == s->graph();
    if (!ours) {
      throw make_error(
          Code::failed_precondition,
          "a tensor of graph '{}' (node '{}') is used in graph '{}': it escaped from the function or block "
          "that made it; return it from there, or pass it as an argument",
          s->graph()->name(), s->output().node->name, graph_->name());
    }
    Node*& node = captured_outputs_[{s->output().node, s->output().index}];
    if (!node && s->output().node->is("Const")) node = graph_->add_constant(*s->constant(), s->output().node->where);
    if (!node) {
      node = capture(t);
      node->values[0] = s->constant() ? *s->constant() : Tensor();
      if (const Dims* known = s->elements()) node->elements = {*known};
    }
    return {node, 0};
  }
  if (t.is_symbolic() && !owned_symbol(t)) throw Error(Code::failed_precondition, t.impl()->symbol->described());
  if (t.is_symbolic()) {
    throw make_error(
        Code::failed_precondition,
        "a tensor that describes a functional model is used in graph '{}', where it has no value: call the "
        "model on a value instead",
        graph_->name());
  }
  if (t.dtype() == DType::resource && t.num_elements() == 1) {
    Node*& node = captured_[resource_key(t)];
    if (!node) node = capture(t);
    node->values[0] = t;
    return {node, 0};
  }
  if (t.impl()->epoch >= epoch_ && t.device().is_host()) {
    Node*& node = constants_[t.impl().get()];
    if (!node) {
      node = graph_->add_constant(t, where);
      keep_.push_back(t);
    }
    return {node, 0};
  }
  Node*& node = captured_[t.impl().get()];
  if (!node) {
    node = capture(t);
    if (t.num_elements() <= kSmallValue) node->values[0] = t;
  }
  return {node, 0};
}

Node* Tracer::captured_as(const Tensor& t) const {
  if (const NodeSymbol* s = node_symbol(t)) {
    auto it = captured_outputs_.find({s->output().node, s->output().index});
    return it == captured_outputs_.end() ? nullptr : it->second;
  }
  auto it = captured_.find(t.dtype() == DType::resource ? resource_key(t) : t.impl().get());
  return it == captured_.end() ? nullptr : it->second;
}

void Tracer::set_outputs(const std::vector<Tensor>& outputs) {
  const UnloggedHandles unlogged;
  std::vector<NodeOutput> all;
  for (const Tensor& t : outputs) all.push_back(localise(t, {}));
  graph_->set_outputs(std::move(all));
}

void Tracer::find_values(const OpDef& op, Inputs inputs, const void* attrs, Node* node) {
  if (op.stateful || inputs.empty()) return;
  for (size_t i = 0; i < node->dtypes.size(); ++i) {
    if (!is_integer(node->dtypes[i]) && node->dtypes[i] != DType::bool_) return;
    if (node->values[i].defined()) return;
  }
  std::vector<const Tensor*> known;
  int64_t elements = 0;
  for (const Tensor* t : inputs) {
    known.push_back(t->known_value());
    if (!known.back() || !is_plain(known.back()->dtype()) || !known.back()->device().is_host()) return;
    elements += known.back()->num_elements();
  }
  if (elements > kSmallValue) return;
  for (const PartialShape& s : node->shapes) {
    if (s.is_static() && Shape(s).num_elements() > kSmallValue) return;
  }
  try {
    const OutsideTrace outside;
    std::vector<Tensor> out(node->dtypes.size());
    dispatch(op, known, attrs, out.data(), static_cast<int>(out.size()), node->where);
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i].num_elements() > kSmallValue) continue;
      node->values[i] = out[i];
      node->shapes[i] = out[i].shape();
    }
  } catch (const Error&) {  // what fails here fails when the graph runs, if it gets there
  }
}

void Tracer::call(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
                  const SourceSite& where) {
  const UnloggedHandles unlogged;
  std::vector<DType> dtypes(static_cast<size_t>(num_outputs));
  resolve_types(op, inputs, attrs, dtypes.data());
  std::vector<NodeOutput> in;
  bool shapes_known = true;
  for (const Tensor* t : inputs) {
    in.push_back(localise(*t, where));
    shapes_known = shapes_known && t->partial_shape().is_static();
  }
  InferContext infer(op, inputs, attrs, num_outputs);
  std::vector<Tensor> values(static_cast<size_t>(num_outputs));
  std::vector<Dims> elements(static_cast<size_t>(num_outputs));
  infer.ask_values(&values, &elements);
  op.infer(infer);
  std::vector<PartialShape> shapes;
  for (int i = 0; i < num_outputs; ++i) {
    shapes.push_back(infer.output_shape(i));
    shapes_known = shapes_known && shapes.back().is_static();
  }
  // The node of a block has the name of its scope.
  const char* const block = block_scope_of_op(op.name);
  const std::string name = block ? block : op.name;
  const bool is_bare = thread_context().name_scope == &scope_;
  Node* node = graph_->add(op, std::move(in), op.attrs.copy ? op.attrs.copy(attrs) : nullptr, std::move(dtypes),
                           std::move(shapes), where, is_bare ? name : in_name_scope(name));
  if (block && is_bare && !scope_.empty()) graph_->unique_name(in_name_scope(block));
  node->inferred = shapes_known && !infer.asked_in_vain();
  node->values = std::move(values);
  node->elements = std::move(elements);
  find_values(op, inputs, attrs, node);
  find_elements(op, inputs, attrs, *node);
  if (op.stateful) order(node, inputs);
  for (int i = 0; i < num_outputs; ++i) outputs[i] = symbolic(graph_, {node, i});
}

void Tracer::order(Node* node, Inputs inputs) {
  std::vector<const void*> touched;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->dtype() != DType::resource) continue;
    touched.push_back(node->inputs[i].node);  // one captured input per resource
  }
  const bool calls = !functions_of(*node).empty();
  if (touched.empty() || (calls && has_side_effect(*node))) touched.push_back(nullptr);
  const bool reads = node->op->reads_variable && (!calls || !has_side_effect(*node));
  auto wait_for = [&](Node* before) {
    if (before && before != node &&
        std::find(node->control_inputs.begin(), node->control_inputs.end(), before) == node->control_inputs.end()) {
      node->control_inputs.push_back(before);
    }
  };
  for (const void* key : touched) {
    Effects& e = effects_[key];
    wait_for(e.writer);
    if (reads) {
      e.readers.push_back(node);
    } else {
      for (Node* reader : e.readers) wait_for(reader);
      e.readers.clear();
      e.writer = node;
    }
  }
}

// The initial value of a variable made inside a function: what it depends on is run once, now.
Tensor Tracer::outside(const Tensor& symbolic) {
  const NodeSymbol* s = node_symbol(symbolic);
  if (!s) return symbolic;
  if (s->graph() != graph_) {
    if (parent_) return parent_->outside(symbolic);
    localise(symbolic, {});  // throws: it escaped
  }
  auto copy = graph_->clone();
  Node* wanted = copy->nodes()[static_cast<size_t>(s->output().node->id)].get();
  copy->set_outputs({{wanted, s->output().index}});
  copy->sort();  // a loop whose gradient was taken stands before what was added for it
  std::vector<bool> needed(static_cast<size_t>(copy->num_nodes()), false);
  needed[static_cast<size_t>(wanted->id)] = true;
  for (int i = wanted->id; i >= 0; --i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    for (const NodeOutput& in : copy->nodes()[static_cast<size_t>(i)]->inputs) {
      needed[static_cast<size_t>(in.node->id)] = true;
    }
  }
  const size_t parameters = copy->inputs().size() - captures_.size();
  for (size_t i = 0; i < copy->inputs().size(); ++i) {
    const bool is_parameter = i < parameters || captures_[i - parameters].is_symbolic();
    if (needed[static_cast<size_t>(copy->inputs()[i]->id)] && is_parameter) {
      throw make_error(
          Code::failed_precondition,
          "[Variable] the initial value depends on an argument of the function '{}', which has no value while it is "
          "traced: make the variable outside",
          graph_->name());
    }
    needed[static_cast<size_t>(copy->inputs()[i]->id)] = true;
  }
  copy->retain(needed);
  const OutsideTrace outside;
  const GraphFunction run(copy);
  std::vector<Tensor> in(parameters, Tensor(0));
  in.insert(in.end(), captures_.begin(), captures_.end());
  return run.run(in)[0];
}

void Tracer::variable_created(const std::string& name) {
  if (!allow_variables) {
    throw make_error(
        Code::invalid_argument,
        "[Variable] '{}' is created again when the function '{}' is traced again: a function makes variables on its "
        "first call only. Keep the variable outside the function, or make it only where it is not defined() yet",
        name, graph_->name());
  }
  for (Tracer* t = this; t; t = t->parent_) ++t->variables_created;
}

}  // namespace runnel
