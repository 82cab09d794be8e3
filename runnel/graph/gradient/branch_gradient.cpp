// The derivative of nodes that run one of several functions: the same choice among the functions' derivatives.
#include "runnel/graph/gradient/branch_gradient.h"

#include <algorithm>
#include <cstring>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/graph/call.h"
#include "runnel/ops/array.h"

namespace runnel {
namespace {

bool is_if(const Node& n) { return n.is("If") || n.is("StatelessIf"); }
bool is_case(const Node& n) { return n.is("Case") || n.is("StatelessCase"); }

std::vector<GraphFunctionPtr> branches_of(const Node& node) {
  if (is_if(node)) {
    const auto& a = node.attrs_as<IfAttrs>();
    return {function_ptr(a.then_branch), function_ptr(a.else_branch)};
  }
  if (!is_case(node)) return {function_ptr(node.attrs_as<CallAttrs>().f)};
  std::vector<GraphFunctionPtr> all;
  for (const FuncAttr& f : node.attrs_as<CaseAttrs>().branches) all.push_back(function_ptr(f));
  return all;
}

template <class A>
std::shared_ptr<A> with_outputs(const Node& node) {
  auto attrs = std::make_shared<A>(node.attrs_as<A>());
  attrs->Tout = node.dtypes;
  attrs->output_shapes = node.shapes;
  return attrs;
}

void set_branches(Node& node, const std::vector<GraphFunctionPtr>& branches) {
  if (is_if(node)) {
    auto attrs = with_outputs<IfAttrs>(node);
    attrs->then_branch = func_attr(branches[0]);
    attrs->else_branch = func_attr(branches[1]);
    node.attrs = std::move(attrs);
  } else if (is_case(node)) {
    auto attrs = with_outputs<CaseAttrs>(node);
    for (size_t i = 0; i < branches.size(); ++i) attrs->branches[i] = func_attr(branches[i]);
    node.attrs = std::move(attrs);
  } else {
    auto attrs = with_outputs<CallAttrs>(node);
    attrs->f = func_attr(branches[0]);
    node.attrs = std::move(attrs);
  }
}

// Lets a node's branches also return what derivatives of one order more need; each returns a stand-in for what others
// do.
void extend_branches(Node& node) {
  const auto own = static_cast<size_t>(node.num_outputs());
  std::vector<GraphFunctionPtr> extended;
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<std::vector<NodeOutput>> outputs;
  std::vector<size_t> served;
  bool all_complete = true;
  for (const GraphFunctionPtr& f : branches_of(node)) {
    all_complete = all_complete && f->is_complete();
    served = f->served();
    extended.push_back(f->extended(f->orders() + 1));
    graphs.push_back(extended.back()->graph().clone());
    const auto first = graphs.back()->outputs().begin();
    outputs.emplace_back(first, first + static_cast<ptrdiff_t>(own));
  }
  if (all_complete) throw make_error(Code::internal, "'{}' has no derivative", node.name);
  served.push_back(own);
  for (size_t i = 0; i < graphs.size(); ++i) {
    for (size_t k = own; k < graphs[i]->outputs().size(); ++k) {
      const NodeOutput extra = graphs[i]->outputs()[k];
      const DType dtype = extra.node->dtype(extra.index);
      for (size_t j = 0; j < graphs.size(); ++j) {
        if (i == j) {
          outputs[j].push_back(extra);
          continue;
        }
        Tensor nothing = Tensor::empty(dtype, {});
        if (is_plain(dtype)) std::memset(nothing.mutable_data<char>(), 0, nothing.num_bytes());
        outputs[j].push_back({graphs[j]->add_constant(nothing, {}), 0});
      }
      const PartialShape& shape = extra.node->shape(extra.index);
      node.dtypes.push_back(dtype);
      node.shapes.push_back(graphs.size() == 1 ? shape : relaxed(shape, PartialShape{}));
      node.values.emplace_back();
    }
  }
  std::vector<GraphFunctionPtr> result;
  for (size_t i = 0; i < graphs.size(); ++i) {
    graphs[i]->set_outputs(outputs[i]);
    auto f = std::make_shared<GraphFunction>(graphs[i]);
    f->captures = extended[i]->captures;
    f->set_orders(served, extended[i]->is_complete());
    result.push_back(std::move(f));
  }
  node.inferred = false;
  set_branches(node, result);
}

Gradients gradient_of(const CalledNode& site, const Tensors& known, const std::vector<Gradient>& dy,
                      const std::vector<bool>& needed) {
  for (;;) {
    std::vector<bool> has_dy(static_cast<size_t>(site.node->num_outputs()), false);
    for (size_t i = 0; i < dy.size(); ++i) has_dy[i] = dy[i].defined();
    const std::vector<GraphFunctionPtr> branches = branches_of(*site.node);
    if (std::all_of(branches.begin(), branches.end(),
                    [&](const GraphFunctionPtr& f) { return f->orders() > 0 && f->find_derivative(has_dy, needed); })) {
      break;
    }
    extend_branches(*site.node);
  }
  const std::vector<GraphFunctionPtr> branches = branches_of(*site.node);
  const Tensors outputs = widened_outputs(site, known, gradient_of);
  const Tensors inputs = site.arguments();
  Gradients dx(site.first);
  if (site.first == 0) {
    const Gradients all = function_gradient(branches[0], inputs, outputs, dy, needed);
    dx.insert(dx.end(), all.begin(), all.end());
    return dx;
  }
  std::vector<size_t> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (needed[i]) wanted.push_back(i);
  }
  std::vector<Body> bodies;
  for (const GraphFunctionPtr& f : branches) {
    bodies.push_back(trace_branch(f->name() + "_grad", [&] {
      // Where this branch ran, what it gave has the shapes that it knows.
      Tensors given = outputs;
      for (size_t i = 0; i < given.size(); ++i) {
        const NodeOutput& out = f->graph().outputs()[i];
        const PartialShape& shape = out.node->shape(out.index);
        const bool tells = shape.has_rank() && !(shape == given[i].partial_shape()) && !out.node->is("Const");
        if (tells && is_plain(given[i].dtype())) given[i] = ensure_shape(given[i], shape);
      }
      const Gradients d = function_gradient(f, inputs, given, dy, needed);
      Tensors values;
      for (const size_t i : wanted) values.push_back(d[i].defined() ? d[i].value() : zero_gradient(inputs[i]));
      return values;
    }));
  }
  const Tensor& selector = site.inputs[0];
  const Tensors values = is_if(*site.node)
                             ? add_cond(selector, std::move(bodies[0]), std::move(bodies[1]), site.node->where)
                             : add_case(selector, std::move(bodies), site.node->where);
  dx.resize(site.inputs.size());
  for (size_t k = 0; k < wanted.size(); ++k) dx[site.first + wanted[k]] = values[k];
  return dx;
}

struct Recorded {
  CalledNode site;
  Tensors outputs;
  std::vector<Gradient> dy;
  std::vector<bool> needed;
};
Recorded recorded(const GradCtx& g, size_t first) {
  const NodeSymbol* symbol = g.num_outputs() > 0 ? node_symbol(g.y(0)) : nullptr;
  if (!symbol) throw make_error(Code::unimplemented, kSymbolicOnly);
  Recorded r;
  r.site = {symbol->graph(), symbol->output().node, {}, first};
  for (int i = 0; i < g.num_inputs(); ++i) {
    r.site.inputs.push_back(g.x(i));
    if (static_cast<size_t>(i) >= first) r.needed.push_back(g.needs(i) && is_differentiable(g.x(i).dtype()));
  }
  for (int i = 0; i < g.num_outputs(); ++i) {
    r.outputs.push_back(g.y(i));
    r.dy.push_back(g.raw_dy(i));
  }
  return r;
}

}  // namespace

Tensors widened_outputs(const CalledNode& site, const Tensors& known, SiteGradientFn gradient) {
  Tensors outputs = known;
  for (int i = static_cast<int>(known.size()); i < site.node->num_outputs(); ++i) {
    outputs.push_back(symbolic(site.graph, {site.node, i}));
  }
  if (outputs.size() == known.size() || num_recording_tapes() == 0) return outputs;
  const size_t before = known.size();
  record_step(site.inputs, {outputs.begin() + static_cast<ptrdiff_t>(before), outputs.end()},
              [=](std::span<const Gradient> d, std::span<const bool> need) {
                std::vector<Gradient> dy(before);
                dy.insert(dy.end(), d.begin(), d.end());
                std::vector<bool> needed;
                for (size_t i = site.first; i < site.inputs.size(); ++i) {
                  needed.push_back(need[i] && is_differentiable(site.inputs[i].dtype()));
                }
                return gradient(site, outputs, dy, needed);
              });
  return outputs;
}

Gradients branch_gradient(const GradCtx& g) {
  const Recorded r = recorded(g, 1);
  return gradient_of(r.site, r.outputs, r.dy, r.needed);
}

Gradients call_gradient(const GradCtx& g) {
  const Recorded r = recorded(g, 0);
  const FuncAttr& f = r.site.node->attrs_as<CallAttrs>().f;
  const bool itself = std::dynamic_pointer_cast<const RecursiveFunction>(f.body) != nullptr;
  return (itself ? self_call_gradient : gradient_of)(r.site, r.outputs, r.dy, r.needed);
}

}  // namespace runnel
