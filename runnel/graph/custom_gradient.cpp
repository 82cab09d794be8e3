// A derivative that the program states, as a node: the graph keeps it until derivatives are taken.
#include "runnel/base/format.h"
#include "runnel/graph/call.h"
#include "runnel/graph/control_flow_nodes.h"
#include "runnel/graph/register.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/builder.h"

namespace runnel {
namespace {

struct CustomGradientAttrs {
  FuncAttr f;                     // of the gradient of the value, and what it captured
  std::vector<DType> Tin;         // of the value, the inputs, and what it captured
  std::vector<DType> Tout;        // of the value
  std::vector<int64_t> has_grad;  // by input: does f return a gradient?
  static constexpr auto fields() {
    return field_list(field("f", &CustomGradientAttrs::f), field("Tin", &CustomGradientAttrs::Tin),
                      field("Tout", &CustomGradientAttrs::Tout), field("has_grad", &CustomGradientAttrs::has_grad));
  }
};

Gradients stated_gradient(const GradCtx& g, const CustomGradientAttrs& a) {
  std::vector<Tensor> args{g.dy()};
  for (int i = 1 + static_cast<int>(a.has_grad.size()); i < g.num_inputs(); ++i) args.push_back(g.x(i));
  const std::vector<Tensor> values = call_function(function_ptr(a.f), args);
  Gradients all(static_cast<size_t>(g.num_inputs()));
  size_t at = 0;
  for (size_t i = 0; i < a.has_grad.size(); ++i) {
    if (a.has_grad[i]) all[i + 1] = values[at++];
  }
  return all;
}

}  // namespace

void register_custom_gradient(Registry& r) {
  r.define<CustomGradientAttrs>("_CustomGradient")
      .in_any_list("value_and_inputs", "Tin")
      .out_any_list("output", "Tout")
      .shape([](InferContext& c, const CustomGradientAttrs& a) {
        require_function(a.f, "f");
        if (c.num_inputs() < 1 + static_cast<int>(a.has_grad.size()) || c.num_outputs() != 1) {
          throw invalid_argument("{} inputs and {} outputs, for one value that depends on {} inputs", c.num_inputs(),
                                 c.num_outputs(), a.has_grad.size());
        }
        c.output(c.input(0));
      })
      .same_as([](InferContext&) { return 0; })  // once derivatives are taken it is no more than that
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, c.in(0).with_shape(c.in(0).shape())); })
      .grad([](const GradCtx& g, const CustomGradientAttrs& a) { return stated_gradient(g, a); })
      .decompose([](const std::vector<Tensor>& in, const CustomGradientAttrs&) { return std::vector<Tensor>{in[0]}; })
      .doc("The value; its derivative by the inputs is what a function says.");
}

Tensor Tracer::with_gradient(const Tensor& value, const std::vector<Tensor>& inputs,
                             const std::function<Gradients(const Tensor& dy)>& grad) {
  // Traced at once: what the callback captured are tensors of this graph.
  Tracer backward("custom_gradient", this);
  const Tensor dy = backward.add_parameter(value.dtype(), value.partial_shape());
  backward.open();
  const Gradients grads = grad(dy);
  if (grads.size() != inputs.size()) {
    throw invalid_argument("[custom_gradient] {} inputs, but {} gradients were returned", inputs.size(), grads.size());
  }
  CustomGradientAttrs attrs;
  std::vector<Tensor> results;
  for (const Gradient& g : grads) {
    attrs.has_grad.push_back(g.defined());
    if (g.defined()) results.push_back(g.value());
  }
  backward.set_outputs(results);
  backward.close();
  std::vector<Tensor> all{value};
  all.insert(all.end(), inputs.begin(), inputs.end());
  all.insert(all.end(), backward.captures().begin(), backward.captures().end());
  backward.forget_captures();
  for (const Tensor& t : all) attrs.Tin.push_back(t.dtype());
  attrs.Tout = {value.dtype()};
  attrs.f = func_attr(std::make_shared<GraphFunction>(backward.graph()));
  std::vector<const Tensor*> in;
  for (const Tensor& t : all) in.push_back(&t);
  Tensor out;
  dispatch(registered_op("_CustomGradient"), in, &attrs, &out, 1, {});
  return out;
}

}  // namespace runnel
