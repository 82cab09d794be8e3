// The derivative of a function that calls itself. How deep it goes is known only when it runs, so what the derivative
// needs of one call is packed into one list, which the function returns as one more result: `forward`. `backward` takes
// the list apart. Each calls itself where the function does.
#include <algorithm>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/graph/call.h"
#include "runnel/graph/gradient/branch_gradient.h"
#include "runnel/graph/gradient/gradient.h"
#include "runnel/ops/array.h"
#include "runnel/ops/state.h"
#include "runnel/ops/tensor_list.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel {

struct SelfDerivative {
  GraphFunctionPtr forward;
  // (the gradients of the outputs `dy_of`, the inputs, the list) -> the gradients of the inputs `dx_of`
  GraphFunctionPtr backward;
  std::shared_ptr<RecursiveFunction> forward_ref = std::make_shared<RecursiveFunction>();
  std::shared_ptr<RecursiveFunction> backward_ref = std::make_shared<RecursiveFunction>();
  std::string name;
  std::vector<size_t> dy_of;
  std::vector<size_t> dx_of;
  std::vector<DType> dx_dtypes;
  std::vector<PartialShape> dx_shapes;
};

namespace {

using RecursivePtr = std::shared_ptr<const RecursiveFunction>;

bool is_kept(const Tensor& t) {
  const NodeSymbol* s = node_symbol(t);
  return s && !s->output().node->is("_Arg");
}

// The graph with a list of these values of it as one more output.
GraphFunctionPtr with_list(const GraphFunction& f, const std::shared_ptr<Graph>& graph, const Tensors& values) {
  Tracer editor(graph, nullptr);
  editor.open();
  Tensor list = list_ops::empty(list_ops::element_shape_tensor(PartialShape{}), DType::variant);
  for (const Tensor& t : values) {
    if (!is_kept(t)) continue;
    const Tensor one = list_ops::empty(list_ops::element_shape_tensor(t.partial_shape()), t.dtype());
    list = list_ops::push_back(list, list_ops::push_back(one, t));
  }
  editor.close();
  std::vector<NodeOutput> outputs = graph->outputs();
  outputs.push_back(editor.localise(list, {}));
  graph->set_outputs(std::move(outputs));
  graph->sort();
  auto made = std::make_shared<GraphFunction>(graph);
  made->captures = f.captures;
  return made;
}

GraphFunctionPtr from_list(const GraphFunction& f, const SelfDerivative& d, const BackwardGraph& back) {
  Tracer tracer(f.name() + "_backward");
  tracer.graph()->plan_options = f.graph().plan_options;
  Tensors args;
  for (const size_t i : d.dy_of) {
    const NodeOutput& out = f.graph().outputs()[i];
    args.push_back(tracer.add_parameter(out.node->dtype(out.index), out.node->shape(out.index)));
  }
  Tensors inputs;
  for (const Node* in : f.graph().inputs()) {
    inputs.push_back(tracer.add_parameter(in->dtype(), in->shape()));
    tracer.graph()->inputs().back()->values = in->values;
  }
  const Tensor list = tracer.add_parameter(DType::variant, PartialShape{});
  tracer.open();
  const Tensor scalar = list_ops::element_shape_tensor(PartialShape{});
  int32_t at = 0;
  for (const Tensor& t : back.captures) {
    const NodeSymbol* s = node_symbol(t);
    if (is_kept(t)) {
      const Tensor one = list_ops::get_item(list, Tensor(at++), scalar, DType::variant);
      args.push_back(list_ops::get_item(one, 0, list_ops::element_shape_tensor(t.partial_shape()), t.dtype()));
    } else {
      args.push_back(s ? inputs[static_cast<size_t>(s->output().node->attrs_as<ArgAttrs>().index)] : t);
    }
  }
  const Tensors values = replay(*back.graph, args);
  Tensors results;
  size_t next = 0;
  for (size_t i = 0, wanted = 0; i < inputs.size(); ++i) {
    Gradient g;
    if (back.result[i] == Derivative::Kind::dense) g = values[next++];
    if (back.result[i] == Derivative::Kind::slices) {
      g = IndexedSlices{values[next], values[next + 1], values[next + 2]};
      next += 3;
    }
    if (wanted == d.dx_of.size() || d.dx_of[wanted] != i) continue;
    ++wanted;
    results.push_back(g.defined() ? g.value() : zero_gradient(inputs[i]));
  }
  tracer.set_outputs(results);
  tracer.close();
  tracer.graph()->sort();
  prune(*tracer.graph());
  auto made = std::make_shared<GraphFunction>(tracer.graph());
  made->captures = tracer.captures();
  return made;
}

// Made once; while it is being made, calls of the function by itself need no more than the references.
const SelfDerivative& derive(const RecursivePtr& ref) {
  const GraphFunctionPtr f = ref->target.lock();
  if (!f) throw make_error(Code::failed_precondition, "the function does not exist any more");
  if (f->graph().outputs().empty()) {
    throw make_error(Code::unimplemented,
                     "[{}] calls itself and asks for the derivative of that call while it is being traced: take the "
                     "gradient outside, of a call of the whole function",
                     f->name());
  }
  if (f->self_derivative) return *f->self_derivative;
  auto d = std::make_shared<SelfDerivative>();
  d->name = f->name();
  d->forward_ref->base = ref;
  d->forward_ref->list_at = f->graph().outputs().size();
  std::vector<bool> has_dy;
  for (const NodeOutput& out : f->graph().outputs()) {
    has_dy.push_back(has_gradient(out.node->dtype(out.index)));
    if (has_dy.back()) d->dy_of.push_back(has_dy.size() - 1);
  }
  std::vector<bool> needed;
  for (const Node* in : f->graph().inputs()) {
    needed.push_back(is_differentiable(in->dtype()));
    if (in->dtype() == DType::resource) {
      const VariableSlot* slot = nullptr;
      if (in->values[0].defined()) {
        slot = referred_as<const VariableSlot>(in->values[0]);
      }
      needed.back() = slot && is_differentiable(slot->dtype);
      if (!needed.back()) continue;
      d->dx_dtypes.push_back(slot->dtype);
      d->dx_shapes.push_back(slot->shape);
    } else if (needed.back()) {
      d->dx_dtypes.push_back(in->dtype());
      d->dx_shapes.push_back(in->shape());
    }
    if (needed.back()) d->dx_of.push_back(needed.size() - 1);
  }
  f->self_derivative = d;
  try {
    const std::shared_ptr<Graph> graph = f->graph().clone();
    const BackwardGraph back = build_backward(graph, graph->outputs(), has_dy, needed);
    graph->sort();
    d->backward = from_list(*f, *d, back);
    d->forward = with_list(*f, graph, back.captures);
  } catch (...) {
    f->self_derivative = nullptr;
    throw;
  }
  d->forward_ref->target = d->forward;
  d->backward_ref->target = d->backward;
  return *d;
}

}  // namespace

Gradients self_call_gradient(const CalledNode& site, const Tensors& known, const std::vector<Gradient>& dy,
                             const std::vector<bool>& needed) {
  Node& node = *site.node;
  RecursivePtr ref = std::dynamic_pointer_cast<const RecursiveFunction>(node.attrs_as<CallAttrs>().f.body);
  // The call may return lists already, the first for the first order.
  size_t list_at = static_cast<size_t>(node.num_outputs());
  while (ref->base && std::none_of(dy.begin() + static_cast<ptrdiff_t>(std::min(ref->list_at, dy.size())), dy.end(),
                                   [](const Gradient& g) { return g.defined(); })) {
    list_at = ref->list_at;
    ref = ref->base;
  }
  const SelfDerivative& d = derive(ref);
  if (site.inputs.size() != needed.size() || site.inputs.size() < d.dx_of.size() ||
      (!d.dx_of.empty() && d.dx_of.back() >= site.inputs.size())) {
    throw make_error(Code::unimplemented,
                     "the derivative of '{}', which calls itself without what it captured: pass that as an argument",
                     d.name);
  }
  if (list_at == static_cast<size_t>(node.num_outputs())) {
    node.dtypes.push_back(DType::variant);
    node.shapes.emplace_back();
    node.values.emplace_back();
    node.inferred = false;
    auto attrs = std::make_shared<CallAttrs>(node.attrs_as<CallAttrs>());
    attrs->f = {d.name + "_forward", d.forward_ref};
    attrs->Tout = node.dtypes;
    attrs->output_shapes = node.shapes;
    node.attrs = std::move(attrs);
  }
  const Tensors outputs = widened_outputs(site, known, self_call_gradient);
  CallAttrs attrs;
  Tensors args;
  for (const size_t i : d.dy_of) {
    args.push_back(i < dy.size() && dy[i].defined() ? dy[i].value() : zeros_like(outputs[i]));
  }
  args.insert(args.end(), site.inputs.begin(), site.inputs.end());
  args.push_back(outputs[list_at]);
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) {
    in.push_back(&t);
    attrs.Tin.push_back(t.dtype());
  }
  attrs.Tout = d.dx_dtypes;
  attrs.output_shapes = d.dx_shapes;
  attrs.f = {d.name + "_backward", d.backward_ref};
  Tensors out(d.dx_of.size());
  dispatch(*node.op, in, &attrs, out.data(), static_cast<int>(out.size()), node.where);
  Gradients dx(site.inputs.size());
  for (size_t k = 0; k < out.size(); ++k) dx[d.dx_of[k]] = out[k];
  return dx;
}

}  // namespace runnel
