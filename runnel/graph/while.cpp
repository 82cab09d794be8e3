// While: loops as nodes.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/graph/control_flow_nodes.h"
#include "runnel/graph/executor/plan.h"
#include "runnel/graph/gradient/while_gradient.h"
#include "runnel/graph/register.h"
#include "runnel/op/builder.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

void run_while(KernelContext& c, const WhileAttrs& a) {
  const auto num_state = static_cast<size_t>(a.num_state);
  const GraphFunction& test = called_function(a.cond, "cond", c.inputs());
  const GraphFunction& step = called_function(a.body, "body", c.inputs());
  if (test.graph().outputs().size() != 1) {
    throw invalid_argument("cond gives {} outputs, one condition is needed", test.graph().outputs().size());
  }
  require_outputs(step, "body", {c.output_dtypes(), static_cast<size_t>(c.num_outputs())});
  Plan::Runner cond(test.plan(), num_state);
  Plan::Runner body(step.plan(), num_state);
  const auto n = static_cast<size_t>(c.num_inputs());
  std::vector<Tensor> state(n);
  std::vector<const Tensor*> in(n);
  for (size_t i = 0; i < n; ++i) {
    state[i] = c.in(static_cast<int>(i));
    in[i] = &state[i];
  }
  Tensor go;
  for (;;) {
    cond.run(in, &go, 1);
    if (!static_cast<bool>(go)) break;
    body.run(in, c.outputs(), num_state);
    for (size_t i = 0; i < num_state; ++i) state[i] = std::move(c.out(static_cast<int>(i)));
  }
  require_stated_shapes(a.output_shapes, state);
  for (size_t i = 0; i < n; ++i) c.forward(static_cast<int>(i), std::move(state[i]));
}

template <class B>
void define_while(B b) {
  b.in_any_list("input", "T")
      .out_any_list("output", "T")
      .shape([](InferContext& c, const WhileAttrs& a) {
        require_function(a.cond, "cond");
        require_function(a.body, "body");
        if (a.num_state < 0 || a.num_state > c.num_inputs()) {
          throw invalid_argument("{} inputs, {} of which are to be state", c.num_inputs(), a.num_state);
        }
        for (int i = 0; i < c.num_outputs(); ++i) c.output(i, stated_shape(a.output_shapes, i));
      })
      .forwards()
      .cpu([](KernelContext& c, const WhileAttrs& a) { run_while(c, a); })
      .any_device()
      .runs_code()
      .grad([](const GradCtx& g, const WhileAttrs& a) { return while_gradient(g, a); })
      .doc("body(input) again and again while cond(input) holds.");
}

// The inputs of both graphs: the state, then everything that either captured.
Tensors unify_captures(Body& cond, Body& body, size_t num_state, const Tensors& first) {
  Tensors all = first;
  const auto add = [&](const Tensor& t, const Body* before) {
    const bool listed = std::any_of(first.begin(), first.end(), [&](const Tensor& f) {
      if (f.impl() == t.impl()) return true;
      const NodeSymbol* a = node_symbol(f);
      const NodeSymbol* b = node_symbol(t);
      return a && b && a->output() == b->output();
    });
    if (!listed && !(before && before->tracer->captured_as(t))) all.push_back(t);
  };
  for (const Tensor& t : cond.tracer->captures()) add(t, nullptr);
  for (const Tensor& t : body.tracer->captures()) add(t, &cond);
  for (Body* b : {&cond, &body}) {
    Graph& graph = *b->tracer->graph();
    std::vector<Node*> order(graph.inputs().begin(), graph.inputs().begin() + static_cast<ptrdiff_t>(num_state));
    for (const Tensor& t : all) {
      Node* node = b->tracer->captured_as(t);
      order.push_back(node && node->is("_Arg") ? node : graph.add_input(t.dtype(), t.partial_shape()));
    }
    graph.order_inputs(std::move(order));
  }
  return all;
}

}  // namespace

Body trace_step(const std::string& name, const Tensors& state, const std::vector<PartialShape>& shapes,
                const StepFn& f) {
  Body body;
  body.tracer = std::make_unique<Tracer>(name, Tracer::current());
  Tensors parameters;
  for (size_t i = 0; i < state.size(); ++i) {
    parameters.push_back(body.tracer->add_parameter(state[i].dtype(), shapes[i]));
  }
  body.tracer->open();
  body.outputs = f(parameters);
  body.tracer->set_outputs(body.outputs);
  body.tracer->close();
  return body;
}

Tensors add_while(const ConditionFn& cond, const StepFn& body, const Tensors& state, const WhileOptions& options,
                  const SourceSite& where, const Tensors& first_captures) {
  if (options.maximum_iterations >= 0) {
    Tensors more{Tensor(int64_t{0})};
    more.insert(more.end(), state.begin(), state.end());
    WhileOptions rest = options;
    rest.maximum_iterations = -1;
    if (!rest.shape_invariants.empty()) rest.shape_invariants.insert(rest.shape_invariants.begin(), PartialShape{});
    Tensors out = add_while(
        [&](const Tensors& s) {
          return logical_and(s[0] < options.maximum_iterations, cond(Tensors(s.begin() + 1, s.end())));
        },
        [&](const Tensors& s) {
          Tensors next = body(Tensors(s.begin() + 1, s.end()));
          next.insert(next.begin(), s[0] + 1);
          return next;
        },
        more, rest, where, first_captures);
    out.erase(out.begin());
    return out;
  }
  std::vector<PartialShape> shapes = options.shape_invariants;
  if (!shapes.empty() && shapes.size() != state.size()) {
    throw invalid_argument("[while_loop] {} shape invariants for {} tensors{}", shapes.size(), state.size(),
                           where.at());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (relaxed(shapes[i], state[i].partial_shape()) == shapes[i]) continue;
    throw invalid_argument("[while_loop] variable {} has the shape invariant {}, but is {} before the loop{}", i,
                           shapes[i].str(), state[i].partial_shape().str(), where.at());
  }
  if (shapes.empty()) {
    for (const Tensor& t : state) shapes.push_back(t.partial_shape());
  }
  Body step;
  for (;;) {
    step = trace_step("while_body", state, shapes, body);
    if (step.outputs.size() != state.size()) {
      throw invalid_argument("[while_loop] the body gives {} tensors, the loop has {}{}", step.outputs.size(),
                             state.size(), where.at());
    }
    bool changed = false;
    for (size_t i = 0; i < state.size(); ++i) {
      if (step.outputs[i].dtype() != state[i].dtype()) {
        throw invalid_argument(
            "[while_loop] variable {} is {} before the loop and {} after its body: cast one of them{}", i,
            dtype_name(state[i].dtype()), dtype_name(step.outputs[i].dtype()), where.at());
      }
      const PartialShape common = relaxed(shapes[i], step.outputs[i].partial_shape());
      if (common == shapes[i]) continue;
      if (!options.shape_invariants.empty()) {
        throw invalid_argument("[while_loop] variable {} has the shape invariant {}, the body gives {}{}", i,
                               shapes[i].str(), step.outputs[i].partial_shape().str(), where.at());
      }
      shapes[i] = common;
      changed = true;
    }
    if (!changed) break;
  }
  Body test = trace_step("while_cond", state, shapes, [&](const Tensors& s) { return Tensors{cond(s)}; });
  return emit_while(std::move(test), std::move(step), state, shapes, where, first_captures);
}

Tensors emit_while(Body test, Body step, const Tensors& state, const std::vector<PartialShape>& shapes,
                   const SourceSite& where, const Tensors& first_captures) {
  const UnloggedHandles unlogged;
  const NodeOutput go = test.tracer->graph()->outputs().at(0);
  require_single("while_loop", go.node->shape(go.index), where);
  const Tensors captures = unify_captures(test, step, state.size(), first_captures);
  WhileAttrs attrs;
  attrs.num_state = static_cast<int64_t>(state.size());
  std::vector<NodeOutput> outputs = step.tracer->graph()->outputs();
  std::vector<const Tensor*> in;
  for (size_t i = 0; i < state.size(); ++i) {
    in.push_back(&state[i]);
    attrs.output_shapes.push_back(shapes[i]);
  }
  for (size_t i = 0; i < captures.size(); ++i) {
    in.push_back(&captures[i]);
    attrs.output_shapes.push_back(captures[i].partial_shape());
    outputs.push_back({step.tracer->graph()->inputs()[state.size() + i], 0});
  }
  for (const Tensor* t : in) attrs.T.push_back(t->dtype());
  step.tracer->graph()->set_outputs(std::move(outputs));
  const GraphFunctionPtr test_function = finish(test);
  const GraphFunctionPtr step_function = finish(step);
  attrs.cond = func_attr(test_function);
  attrs.body = func_attr(step_function);
  const bool stateful = test_function->graph().has_stateful_ops() || step_function->graph().has_stateful_ops();
  Tensors out(in.size());
  dispatch(registered_op(stateful ? "While" : "StatelessWhile"), in, &attrs, out.data(), static_cast<int>(out.size()),
           where);
  out.resize(state.size());
  return out;
}

void register_while(Registry& r) {
  define_while(r.define<WhileAttrs>("StatelessWhile"));
  define_while(r.define<WhileAttrs>("While").stateful().reads_variable());
}

}  // namespace runnel
