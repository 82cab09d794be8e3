#include "runnel/graph/graph_function.h"

#include <algorithm>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/graph/call.h"
#include "runnel/graph/gradient.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/graph/tracer.h"

namespace runnel {

const Plan& GraphFunction::plan() const {
  std::call_once(planned_, [this] {
    planned_graph_ = graph_->clone();
    optimize(*planned_graph_);
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

bool has_loops(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->is("While") || node->is("StatelessWhile")) return true;
    for (const FuncAttr& f : functions_of(*node)) {
      const auto* body = dynamic_cast<const GraphFunction*>(f.body.get());
      if (body && has_loops(body->graph())) return true;
    }
  }
  return false;
}

}  // namespace

GraphFunctionPtr GraphFunction::extended(bool all_orders) const {
  const std::lock_guard lock(mutex_);
  if (is_extended_) return shared_from_this();
  GraphFunctionPtr& known = extended_[all_orders ? 1 : 0];
  if (known) return known;
  auto graph = graph_->clone();
  const std::vector<bool> all_inputs(graph->inputs().size(), true);
  std::vector<NodeOutput> outputs = graph->outputs();
  // Loops keep more for every order: two are enough there.
  const int rounds = !all_orders ? 1 : has_loops(*graph) ? 2 : 100;
  for (int round = 0; round < rounds; ++round) {
    std::vector<bool> has_dy;
    for (const NodeOutput& out : outputs) has_dy.push_back(has_gradient(out.node->dtype(out.index)));
    const BackwardGraph backward = build_backward(graph, outputs, has_dy, all_inputs);
    const size_t before = outputs.size();
    for (const Tensor& t : backward.captures) {
      const NodeSymbol* s = node_symbol(t);
      if (!s || s->output().node->is("_Arg")) continue;
      if (std::find(outputs.begin(), outputs.end(), s->output()) == outputs.end()) outputs.push_back(s->output());
    }
    graph->sort();
    if (outputs.size() == before) break;
  }
  graph->set_outputs(std::move(outputs));
  auto made = std::make_shared<GraphFunction>(std::move(graph));
  made->captures = captures;
  made->is_extended_ = true;
  return known = made;
}

const Derivative& GraphFunction::derivative(const std::vector<bool>& has_dy, const std::vector<bool>& needed) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Derivative>& known = derivatives_[{has_dy, needed}];
  if (known) return *known;
  BackwardGraph built = build_backward(graph_, graph_->outputs(), has_dy, needed);
  auto d = std::make_unique<Derivative>();
  d->dy_of = std::move(built.dy_of);
  d->result = std::move(built.result);
  built.graph->keep = graph_->keep;
  d->backward = std::make_shared<GraphFunction>(std::move(built.graph));
  for (const Tensor& t : built.captures) {
    const NodeSymbol* s = node_symbol(t);
    if (!s) {
      d->saved.push_back({Derivative::From::value, 0, t});
      continue;
    }
    const auto& inputs = graph_->inputs();
    const auto& outputs = graph_->outputs();
    if (auto in = std::find(inputs.begin(), inputs.end(), s->output().node); in != inputs.end()) {
      d->saved.push_back({Derivative::From::input, static_cast<int>(in - inputs.begin()), {}});
    } else if (auto out = std::find(outputs.begin(), outputs.end(), s->output()); out != outputs.end()) {
      d->saved.push_back({Derivative::From::output, static_cast<int>(out - outputs.begin()), {}});
    } else {
      throw make_error(Code::internal, "[{}] the derivative needs '{}', which the forward function does not return",
                       name(), s->output().node->name);
    }
  }
  known = std::move(d);
  return *known;
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
