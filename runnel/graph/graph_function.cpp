#include "runnel/graph/graph_function.h"

#include <algorithm>
#include <optional>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"
#include "runnel/graph/call.h"
#include "runnel/graph/executor/plan.h"
#include "runnel/graph/gradient/gradient.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/graph/tracer.h"
#include "runnel/tensor/profile_step.h"

namespace runnel {

GraphFunction::GraphFunction(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {}
GraphFunction::~GraphFunction() = default;

const Plan& GraphFunction::plan() const {
  std::call_once(planned_, [this] {
    planned_graph_ = graph_->clone();
    optimize(*planned_graph_);
    profile::Span span(profile::Kind::pass, "plan", profile::current_step());
    if (span) span.set_detail(name());
    plan_ = std::make_unique<Plan>(*planned_graph_);
  });
  return *plan_;
}

bool GraphFunction::has_side_effects() const { return graph_->is_stateful(); }

std::vector<Tensor> GraphFunction::run(const std::vector<Tensor>& inputs) const {
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  if (in.size() < static_cast<size_t>(plan().num_inputs())) {
    for (const Tensor& t : captures) in.push_back(&t);
  }
  std::vector<Tensor> out(static_cast<size_t>(plan().num_outputs()));
  plan().run(in, out.data());
  return out;
}

namespace {

// Derivatives are made rarely, and making one may need others: one lock for all cannot be taken in two orders.
std::recursive_mutex& derivation_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

}  // namespace

GraphFunctionPtr GraphFunction::extended(int orders) const {
  if (complete_ || orders <= this->orders()) return shared_from_this();
  const std::lock_guard deriving(derivation_mutex());
  GraphFunctionPtr more;
  {
    const std::lock_guard lock(mutex_);
    more = more_;
  }
  if (!more) {
    more = extend_once();
    const std::lock_guard lock(mutex_);
    more_ = more;
  }
  return more->extended(orders);
}

GraphFunctionPtr GraphFunction::extend_once() const {
  auto graph = graph_->clone();
  const std::vector<bool> all_inputs(graph->inputs().size(), true);
  std::vector<NodeOutput> outputs = graph->outputs();
  const size_t before = outputs.size();
  std::vector<bool> has_dy;
  for (const NodeOutput& out : outputs) has_dy.push_back(has_gradient(out.node->dtype(out.index)));
  for (const Tensor& t : build_backward(graph, outputs, has_dy, all_inputs).captures) {
    const NodeSymbol* s = node_symbol(t);
    if (!s || s->output().node->is("_Arg")) continue;
    if (std::find(outputs.begin(), outputs.end(), s->output()) == outputs.end()) outputs.push_back(s->output());
  }
  graph->sort();
  const bool complete = outputs.size() == before;
  graph->set_outputs(std::move(outputs));
  auto made = std::make_shared<GraphFunction>(std::move(graph));
  made->captures = captures;
  std::vector<size_t> served = served_;
  served.push_back(before);
  made->set_orders(std::move(served), complete);
  return made;
}

std::shared_ptr<const Derivative> GraphFunction::build_derivative(const Pattern& pattern) const {
  profile::Span span(profile::Kind::pass, "derivative", profile::current_step());
  if (span) span.set_detail(name());
  // On a copy: branches and loops of the graph itself stay as they were when it was planned.
  const std::shared_ptr<Graph> graph = graph_->clone();
  BackwardGraph built = build_backward(graph, graph->outputs(), pattern.first, pattern.second);
  auto d = std::make_shared<Derivative>();
  d->dy_of = std::move(built.dy_of);
  d->result = std::move(built.result);
  const auto& inputs = graph->inputs();
  const auto& outputs = graph->outputs();
  for (const Tensor& t : built.captures) {
    const NodeSymbol* s = node_symbol(t);
    if (!s) {
      d->saved.push_back({Derivative::From::value, 0, t});
    } else if (auto in = std::find(inputs.begin(), inputs.end(), s->output().node); in != inputs.end()) {
      d->saved.push_back({Derivative::From::input, static_cast<int>(in - inputs.begin()), {}});
    } else if (auto out = std::find(outputs.begin(), outputs.end(), s->output()); out != outputs.end()) {
      d->saved.push_back({Derivative::From::output, static_cast<int>(out - outputs.begin()), {}});
    } else {
      return nullptr;
    }
  }
  built.graph->keep = graph->keep;
  d->backward = std::make_shared<GraphFunction>(std::move(built.graph));
  return d;
}

const Derivative* GraphFunction::find_derivative(const std::vector<bool>& has_dy,
                                                 const std::vector<bool>& needed) const {
  const Pattern pattern{has_dy, needed};
  const auto known = [&](const Pattern& p) -> std::optional<const Derivative*> {
    const std::lock_guard lock(mutex_);
    auto it = derivatives_.find(p);
    if (it == derivatives_.end()) return std::nullopt;
    return it->second.get();
  };
  const auto store = [&](const Pattern& p, std::shared_ptr<const Derivative> d) {
    const std::lock_guard lock(mutex_);
    return (derivatives_[p] = std::move(d)).get();
  };
  if (const auto found = known(pattern)) return *found;
  const std::lock_guard deriving(derivation_mutex());
  if (const auto found = known(pattern)) return *found;
  if (auto exact = build_derivative(pattern)) return store(pattern, std::move(exact));
  // Where some gradients are missing others may be computed from values that nobody kept (zeros like an intermediate);
  // what was kept serves gradients of all outputs of one order.
  const auto last = std::find(has_dy.rbegin(), has_dy.rend(), true);
  const auto wanted = static_cast<size_t>(has_dy.rend() - last);
  for (const size_t served : served_) {
    if (served < wanted) continue;
    Pattern full{std::vector<bool>(has_dy.size(), false), std::vector<bool>(needed.size(), true)};
    for (size_t i = 0; i < served; ++i) {
      const NodeOutput& out = graph_->outputs()[i];
      full.first[i] = has_gradient(out.node->dtype(out.index));
    }
    if (auto whole = build_derivative(full)) return store(pattern, std::move(whole));
  }
  return store(pattern, nullptr);
}

const Derivative& GraphFunction::derivative(const std::vector<bool>& has_dy, const std::vector<bool>& needed) const {
  if (const Derivative* d = find_derivative(has_dy, needed)) return *d;
  throw make_error(Code::internal, "[{}] was run for derivatives of {} orders, and one more is asked for", name(),
                   orders());
}

const GraphFunction* graph_function(const FuncAttr& f) {
  if (const auto* direct = dynamic_cast<const GraphFunction*>(f.body.get())) return direct;
  if (const auto* again = dynamic_cast<const RecursiveFunction*>(f.body.get())) {
    return again->target.lock().get();  // kept alive by who runs it
  }
  return nullptr;
}

bool has_side_effects(const FuncAttr& f) {
  if (const auto* direct = dynamic_cast<const GraphFunction*>(f.body.get())) return direct->has_side_effects();
  return true;
}

void require_function(const FuncAttr& f, const char* attribute) {
  if (f.body) return;
  if (f.name.empty()) throw invalid_argument("attribute '{}' names no function", attribute);
  throw make_error(Code::not_found, "attribute '{}': there is no function '{}' in this program", attribute, f.name);
}

const GraphFunction& called_function(const FuncAttr& f, const char* attribute, std::span<const Tensor* const> inputs,
                                     bool adds_captures) {
  require_function(f, attribute);
  const GraphFunction* function = graph_function(f);
  if (!function) throw make_error(Code::failed_precondition, "the function '{}' does not exist any more", f.name);
  const std::vector<Node*>& parameters = function->graph().inputs();
  const size_t added = adds_captures ? function->captures.size() : 0;
  if (inputs.size() != parameters.size() && inputs.size() + added != parameters.size()) {
    throw invalid_argument("the function '{}' takes {} inputs, got {}", f.name, parameters.size(), inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (parameters[i]->dtype() == inputs[i]->dtype()) continue;
    throw invalid_argument("input {} of the function '{}' is {}, got {}", i, f.name, dtype_name(parameters[i]->dtype()),
                           dtype_name(inputs[i]->dtype()));
  }
  return *function;
}

void require_outputs(const GraphFunction& f, const char* attribute, std::span<const DType> dtypes) {
  const std::vector<NodeOutput>& outputs = f.graph().outputs();
  if (outputs.size() != dtypes.size()) {
    throw invalid_argument("attribute '{}': the function '{}' gives {} outputs, the op has {}", attribute, f.name(),
                           outputs.size(), dtypes.size());
  }
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const DType own = outputs[i].node->dtype(outputs[i].index);
    if (own == dtypes[i]) continue;
    throw invalid_argument("attribute '{}': output {} of the function '{}' is {}, the op's is {}", attribute, i,
                           f.name(), dtype_name(own), dtype_name(dtypes[i]));
  }
}

const PartialShape& stated_shape(const std::vector<PartialShape>& shapes, int i) {
  static const PartialShape unknown = PartialShape::unknown();
  const auto at = static_cast<size_t>(i);
  return at < shapes.size() ? shapes[at] : unknown;
}

void require_stated_shapes(const std::vector<PartialShape>& shapes, std::span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size() && i < shapes.size(); ++i) {
    if (!shapes[i].has_rank() || shapes[i].compatible_with(outputs[i].shape())) continue;
    throw invalid_argument("output {} has shape {}, the op says {}", i, outputs[i].shape().str(), shapes[i].str());
  }
}

FuncAttr func_attr(const GraphFunctionPtr& f) { return {f->name(), f}; }

std::vector<Tensor> replay(const Graph& graph, const std::vector<Tensor>& inputs) {
  const UnloggedHandles unlogged;  // the handles in here, those of constants among them, are nobody's variables
  std::vector<std::vector<Tensor>> values(static_cast<size_t>(graph.num_nodes()));
  Tracer* tracer = Tracer::current();
  for (size_t i = 0; i < graph.inputs().size(); ++i) values[static_cast<size_t>(graph.inputs()[i]->id)] = {inputs[i]};
  std::vector<const Tensor*> in;
  for (const auto& node : graph.nodes()) {
    if (node->is("_Arg")) continue;
    std::vector<Tensor>& out = values[static_cast<size_t>(node->id)];
    if (node->is("Const")) {
      const Tensor& value = node->attrs_as<ConstAttrs>().value;
      out = {tracer ? symbolic(tracer->graph(), {tracer->graph()->add_constant(value, node->where), 0}) : value};
      continue;
    }
    in.clear();
    for (const NodeOutput& v : node->inputs) {
      in.push_back(&values[static_cast<size_t>(v.node->id)][static_cast<size_t>(v.index)]);
    }
    out.resize(static_cast<size_t>(node->num_outputs()));
    dispatch(*node->op, in, node->attrs.get(), out.data(), node->num_outputs(), node->where);
  }
  std::vector<Tensor> results;
  for (const NodeOutput& v : graph.outputs()) {
    results.push_back(values[static_cast<size_t>(v.node->id)][static_cast<size_t>(v.index)]);
  }
  return results;
}

}  // namespace runnel
