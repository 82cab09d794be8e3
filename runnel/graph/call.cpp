// Calls of functions, and the ops that every graph has: parameters, constants, calls.
#include "runnel/graph/call.h"

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/base/stack.h"
#include "runnel/graph/executor/plan.h"
#include "runnel/graph/gradient/branch_gradient.h"
#include "runnel/graph/register.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/builder.h"
#include "runnel/ops/array.h"

namespace runnel {
namespace {

struct PlaceholderAttrs {
  DType dtype = DType::invalid;
  PartialShape shape = PartialShape::unknown();
  static constexpr auto fields() {
    return field_list(field("dtype", &PlaceholderAttrs::dtype), field("shape", &PlaceholderAttrs::shape));
  }
};

void no_value(KernelContext& c) {
  throw make_error(Code::failed_precondition, "{} has no value of its own: it must be fed", c.op().name);
}

void run_call(KernelContext& c, const CallAttrs& a) {
  const GraphFunction& f = called_function(a.f, "f", c.inputs(), true);
  const auto n = static_cast<size_t>(c.num_outputs());
  require_outputs(f, "f", {c.output_dtypes(), n});
  if (!stack_has_room()) {
    throw make_error(Code::resource_exhausted,
                     "the calls of '{}' inside one another have used up the stack: a function that calls itself must "
                     "come to an end, or be written as while_loop",
                     a.f.name);
  }
  const Plan& plan = f.plan();
  if (c.num_inputs() == plan.num_inputs()) {
    plan.run(c.inputs(), c.outputs());
  } else {
    std::vector<const Tensor*> all(c.inputs().begin(), c.inputs().end());
    for (const Tensor& t : f.captures) all.push_back(&t);
    plan.run(all, c.outputs());
  }
  require_stated_shapes(a.output_shapes, {c.outputs(), n});
}

void call_shapes(InferContext& c, const CallAttrs& a) {
  require_function(a.f, "f");
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, stated_shape(a.output_shapes, i));
}

auto define_call(Registry& r, const char* name) {
  return r.define<CallAttrs>(name)
      .in_any_list("args", "Tin")
      .out_any_list("output", "Tout")
      .shape([](InferContext& c, const CallAttrs& a) { call_shapes(c, a); })
      .forwards()
      .cpu([](KernelContext& c, const CallAttrs& a) { run_call(c, a); })
      .any_device()
      .runs_code()
      .grad([](const GradCtx& g, const CallAttrs&) { return call_gradient(g); });
}

}  // namespace

void register_graph(Registry& r) {
  r.define<ArgAttrs>("_Arg")
      .out("output", "T")
      // Graphs make the nodes of their parameters without it.
      .shape([](InferContext&) { throw invalid_argument("only a graph makes parameters of itself"); })
      .cpu([](KernelContext& c) { no_value(c); })
      .doc("A parameter of a function.");
  r.define<ConstAttrs>("Const")
      .out("output", "dtype")
      .shape([](InferContext& c, const ConstAttrs& a) { c.output(a.value.partial_shape()); })
      .forwards()
      .cpu([](KernelContext& c, const ConstAttrs& a) { c.forward(0, a.value); })
      .doc("A constant.")
      .sample({.in = {}, .out = {Tensor{1.f, 2.f}}}, {.dtype = DType::float32, .value = Tensor{1.f, 2.f}});
  r.define<PlaceholderAttrs>("Placeholder")
      .out("output", "dtype")
      .shape([](InferContext& c, const PlaceholderAttrs& a) { c.output(a.shape); })
      .cpu([](KernelContext& c) { no_value(c); })
      .doc("A value that is given when the graph runs.");
  r.define("NoOp")
      .shape([](InferContext&) {})
      .cpu([](KernelContext&) {})
      .stateful()
      .doc("Does nothing; other ops can wait for it.");
  define_call(r, "PartitionedCall").doc("Calls a function without side effects.");
  define_call(r, "StatefulPartitionedCall").stateful().reads_variable().doc("Calls a function.");
}

Gradients function_gradient(const GraphFunctionPtr& extended, const std::vector<Tensor>& inputs,
                            const std::vector<Tensor>& outputs, std::span<const Gradient> dy,
                            const std::vector<bool>& needed) {
  std::vector<bool> has_dy(outputs.size(), false);
  for (size_t i = 0; i < dy.size(); ++i) has_dy[i] = dy[i].defined();
  const Derivative& d = extended->derivative(has_dy, needed);
  std::vector<Tensor> args;
  for (const int i : d.dy_of) {
    const auto k = static_cast<size_t>(i);
    args.push_back(has_dy[k] ? dy[k].value() : zeros_like(outputs[k]));
  }
  for (const Derivative::Saved& s : d.saved) {
    switch (s.from) {
      case Derivative::From::input: args.push_back(inputs[static_cast<size_t>(s.index)]); break;
      case Derivative::From::output: args.push_back(outputs[static_cast<size_t>(s.index)]); break;
      case Derivative::From::value: args.push_back(s.value); break;
    }
  }
  const std::vector<Tensor> values = call_function(d.backward, args);
  Gradients dx;
  size_t at = 0;
  for (const Derivative::Kind kind : d.result) {
    switch (kind) {
      case Derivative::Kind::none: dx.emplace_back(); break;
      case Derivative::Kind::dense: dx.emplace_back(values[at++]); break;
      case Derivative::Kind::slices:
        dx.emplace_back(IndexedSlices{values[at], values[at + 1], values[at + 2]});
        at += 3;
        break;
    }
  }
  return dx;
}

std::vector<Tensor> call_function(const GraphFunctionPtr& f, const std::vector<Tensor>& inputs) {
  if (Tracer* tracer = Tracer::current()) {
    tracer->graph()->keep.push_back(f);
    return replay(f->graph(), inputs);
  }
  note_variable_reads(inputs);
  if (!tapes_follow(inputs)) return f->run(inputs);
  const GraphFunctionPtr extended = f->extended(num_recording_tapes());
  std::vector<Tensor> outputs = extended->run(inputs);
  // Tapes tell values apart by their handles: an input, a constant or a variable's value given back, or one value given
  // back twice, is an output of its own.
  for (Tensor& t : outputs) {
    if (!t.impl()->unique() && t.dtype() != DType::resource) t = t.with_shape(t.shape());
  }
  // `f` stays alive with the tape: its graph may refer to it weakly.
  record_step(
      inputs, outputs, [f, extended, inputs, outputs](std::span<const Gradient> dy, std::span<const bool> needed) {
        return function_gradient(extended, inputs, outputs, dy, std::vector<bool>(needed.begin(), needed.end()));
      });
  outputs.resize(f->graph().outputs().size());
  return outputs;
}

}  // namespace runnel
