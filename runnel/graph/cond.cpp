// If and Case.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/stack.h"
#include "runnel/graph/control_flow_nodes.h"
#include "runnel/graph/executor/plan.h"
#include "runnel/graph/gradient/branch_gradient.h"
#include "runnel/graph/register.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"

namespace runnel {
namespace {

bool truth(const Tensor& t) { return static_cast<bool>(t); }

void run_branch(KernelContext& c, const FuncAttr& f, const char* attribute, const std::vector<PartialShape>& shapes) {
  const Inputs inputs = c.inputs().subspan(1);
  const GraphFunction& function = called_function(f, attribute, inputs);
  const auto n = static_cast<size_t>(c.num_outputs());
  require_outputs(function, attribute, {c.output_dtypes(), n});
  function.plan().run(inputs, c.outputs());
  require_stated_shapes(shapes, {c.outputs(), n});
}

// Gives every branch the same inputs: all that any of them captured, in one order.
Tensors unify_inputs(std::vector<Body>& branches) {
  Tensors all;
  for (size_t i = 0; i < branches.size(); ++i) {
    for (const Tensor& t : branches[i].tracer->captures()) {
      const bool known = std::any_of(branches.begin(), branches.begin() + static_cast<ptrdiff_t>(i),
                                     [&](const Body& b) { return b.tracer->captured_as(t) != nullptr; });
      if (!known) all.push_back(t);
    }
  }
  for (Body& branch : branches) {
    std::vector<Node*> order;
    for (const Tensor& t : all) {
      Node* node = branch.tracer->captured_as(t);
      order.push_back(node ? node : branch.tracer->graph()->add_input(t.dtype(), t.partial_shape()));
    }
    branch.tracer->graph()->order_inputs(std::move(order));
  }
  return all;
}

template <class A>
void given_shapes(InferContext& c, const A& a) {
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, stated_shape(a.output_shapes, i));
}

template <class B>
void define_if(B b) {
  b.type("Tcond", all_types)
      .in("cond")
      .in_any_list("input", "Tin")
      .out_any_list("output", "Tout")
      .shape([](InferContext& c, const IfAttrs& a) {
        require_function(a.then_branch, "then_branch");
        require_function(a.else_branch, "else_branch");
        given_shapes(c, a);
      })
      .forwards()
      .cpu([](KernelContext& c, const IfAttrs& a) {
        if (truth(c.in(0))) return run_branch(c, a.then_branch, "then_branch", a.output_shapes);
        run_branch(c, a.else_branch, "else_branch", a.output_shapes);
      })
      .any_device()
      .runs_code()
      .grad([](const GradCtx& g, const IfAttrs&) { return branch_gradient(g); })
      .doc("One of two functions of the inputs.");
}

template <class B>
void define_case(B b) {
  b.in("branch_index", DType::int32)
      .in_any_list("input", "Tin")
      .out_any_list("output", "Tout")
      .shape([](InferContext& c, const CaseAttrs& a) {
        if (a.branches.empty()) throw invalid_argument("has no branches");
        for (const FuncAttr& f : a.branches) require_function(f, "branches");
        given_shapes(c, a);
      })
      .forwards()
      .cpu([](KernelContext& c, const CaseAttrs& a) {
        const auto n = static_cast<int32_t>(a.branches.size());
        const auto i = c.in(0).item<int32_t>();
        run_branch(c, a.branches[static_cast<size_t>(i < 0 || i >= n ? n - 1 : i)], "branches", a.output_shapes);
      })
      .any_device()
      .runs_code()
      .grad([](const GradCtx& g, const CaseAttrs&) { return branch_gradient(g); })
      .doc("One of several functions of the inputs.");
}

// The results of branches: as many, of the same dtypes; what their shapes have in common.
void common_outputs(const char* what, const std::vector<GraphFunctionPtr>& branches, std::vector<DType>& dtypes,
                    std::vector<PartialShape>& shapes) {
  if (branches.empty()) throw invalid_argument("[{}] has no branches", what);
  for (const NodeOutput& out : branches[0]->graph().outputs()) {
    dtypes.push_back(out.node->dtype(out.index));
    shapes.push_back(out.node->shape(out.index));
  }
  for (const GraphFunctionPtr& f : branches) {
    const auto& outs = f->graph().outputs();
    if (outs.size() != dtypes.size()) {
      throw invalid_argument("[{}] one branch gives {} tensors, another {}", what, dtypes.size(), outs.size());
    }
    for (size_t i = 0; i < outs.size(); ++i) {
      const DType t = outs[i].node->dtype(outs[i].index);
      if (t != dtypes[i]) {
        throw invalid_argument("[{}] result {} is {} in one branch and {} in another: cast one of them", what, i,
                               dtype_name(dtypes[i]), dtype_name(t));
      }
      shapes[i] = relaxed(shapes[i], outs[i].node->shape(outs[i].index));
    }
  }
}

}  // namespace

Tensor zero_gradient(const Tensor& x) {
  if (x.dtype() != DType::resource) return zeros_like(x);
  const Tensor* handle = x.known_value();
  if (!handle) throw make_error(Code::unimplemented, "the derivative by a variable that is not known while tracing");
  const Variable v = Variable::from_handle(*handle);
  return v.slot().shape.is_static() ? zeros(Shape(v.slot().shape), v.dtype()) : zeros_like(v.value());
}

void require_single(const char* what, const PartialShape& condition, const SourceSite& where) {
  if (!condition.is_static() || Shape(condition).num_elements() == 1) return;
  throw invalid_argument(
      "[{}] a condition is one value, not a tensor of shape {}: reduce_all or reduce_any makes one of it{}", what,
      condition.str(), where.at());
}

PartialShape relaxed(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return PartialShape::unknown();
  Dims dims = a.dims();
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i]) dims[static_cast<size_t>(i)] = kUnknownDim;
  }
  return PartialShape(dims);
}

bool is_tracing() { return Tracer::current() != nullptr; }

void require_stack(const char* what, const SourceSite& where) {
  if (stack_has_room()) return;
  const char* advice = is_tracing() ? "; what is traced outside of a function that calls itself goes through both "
                                      "branches of a condition: write it as while_loop, or call a function(...)"
                                    : "";
  composed(where, [&] {
    throw make_error(
        Code::resource_exhausted,
        "[{}] the calls inside one another have used up the stack: what calls itself must come to an end{}", what,
        advice);
  });
}

Body::Body() = default;
Body::~Body() = default;
Body::Body(Body&& other) noexcept = default;
Body& Body::operator=(Body&& other) noexcept = default;

GraphFunctionPtr finish(Body& body) {
  body.tracer->graph()->sort();
  prune(*body.tracer->graph());
  body.tracer->forget_captures();
  return std::make_shared<GraphFunction>(body.tracer->graph());
}

GraphFunctionPtr function_ptr(const FuncAttr& f) {
  auto p = std::dynamic_pointer_cast<const GraphFunction>(f.body);
  if (!p) throw make_error(Code::unimplemented, "the derivative of '{}', which is no graph of its own", f.name);
  return p;
}

Body trace_branch(const std::string& name, const BranchFn& f) {
  Body body;
  body.tracer = std::make_unique<Tracer>(name, Tracer::current());
  body.tracer->open();
  body.outputs = f();
  body.tracer->set_outputs(body.outputs);
  body.tracer->close();
  return body;
}

Tensors add_case(const Tensor& index, std::vector<Body> branches, const SourceSite& where) {
  const UnloggedHandles unlogged;
  CaseAttrs attrs;
  Tensors inputs = unify_inputs(branches);
  std::vector<GraphFunctionPtr> functions;
  bool stateful = false;
  for (Body& b : branches) {
    functions.push_back(finish(b));
    attrs.branches.push_back(func_attr(functions.back()));
    stateful = stateful || functions.back()->graph().has_stateful_ops();
  }
  composed(where, [&] { common_outputs("switch_case", functions, attrs.Tout, attrs.output_shapes); });
  std::vector<const Tensor*> in{&index};
  for (const Tensor& t : inputs) {
    in.push_back(&t);
    attrs.Tin.push_back(t.dtype());
  }
  Tensors out(attrs.Tout.size());
  dispatch(registered_op(stateful ? "Case" : "StatelessCase"), in, &attrs, out.data(), static_cast<int>(out.size()),
           where);
  return out;
}

Tensors add_cond(const Tensor& predicate, Body then_body, Body else_body, const SourceSite& where, const char* what) {
  const UnloggedHandles unlogged;
  require_single(what, predicate.partial_shape(), where);
  IfAttrs attrs;
  std::vector<Body> both;
  both.push_back(std::move(then_body));
  both.push_back(std::move(else_body));
  Tensors inputs = unify_inputs(both);
  const std::vector<GraphFunctionPtr> functions{finish(both[0]), finish(both[1])};
  attrs.then_branch = func_attr(functions[0]);
  attrs.else_branch = func_attr(functions[1]);
  composed(where, [&] { common_outputs(what, functions, attrs.Tout, attrs.output_shapes); });
  std::vector<const Tensor*> in{&predicate};
  for (const Tensor& t : inputs) {
    in.push_back(&t);
    attrs.Tin.push_back(t.dtype());
  }
  const bool stateful = functions[0]->graph().has_stateful_ops() || functions[1]->graph().has_stateful_ops();
  Tensors out(attrs.Tout.size());
  dispatch(registered_op(stateful ? "If" : "StatelessIf"), in, &attrs, out.data(), static_cast<int>(out.size()), where);
  return out;
}

void register_cond(Registry& r) {
  define_if(r.define<IfAttrs>("StatelessIf"));
  define_if(r.define<IfAttrs>("If").stateful().reads_variable());
  define_case(r.define<CaseAttrs>("StatelessCase"));
  define_case(r.define<CaseAttrs>("Case").stateful().reads_variable());
}

}  // namespace runnel
