#include "runnel/function/concrete_function.h"

#include "runnel/base/format.h"
#include "runnel/function/call_key.h"
#include "runnel/function/called_graphs.h"
#include "runnel/graph/call.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/composed.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel {

const GraphFunction& ConcreteFunction::made(const SourceSite& where) const {
  if (function_) return *function_;
  throw at_line(make_error(Code::failed_precondition,
                           "[ConcreteFunction] this ConcreteFunction was moved from, or never made: assign what "
                           "get_concrete_function gives to it, or use the object that it was moved into"),
                where);
}

const std::string& ConcreteFunction::name(SourceSite where) const { return made(where).name(); }
const Graph& ConcreteFunction::graph(SourceSite where) const { return made(where).graph(); }
const std::vector<Tensor>& ConcreteFunction::captured_inputs(SourceSite where) const { return made(where).captures; }
size_t ConcreteFunction::num_outputs(SourceSite where) const { return graph(where).outputs().size(); }
std::string ConcreteFunction::to_text(SourceSite where) const { return graph(where).to_text(); }

std::vector<TensorSpec> ConcreteFunction::inputs(SourceSite where) const {
  const Graph& g = graph(where);
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < num_parameters_; ++i) {
    const Node& n = *g.inputs()[i];
    specs.push_back({n.shape(), n.dtype(), n.name});
  }
  return specs;
}

std::vector<TensorSpec> ConcreteFunction::outputs(SourceSite where) const {
  std::vector<TensorSpec> specs;
  for (const NodeOutput& out : graph(where).outputs()) {
    specs.push_back({out.node->shape(out.index), out.node->dtype(out.index), out.node->name});
  }
  return specs;
}

std::vector<Variable> ConcreteFunction::captured_variables(SourceSite where) const {
  std::vector<Variable> all;
  for (const Tensor& t : captured_inputs(where)) {
    if (t.dtype() != DType::resource) continue;
    if (referred_as<VariableSlot>(t)) all.push_back(Variable::from_handle(t));
  }
  return all;
}

std::vector<Variable> ConcreteFunction::trainable_variables(SourceSite where) const {
  std::vector<Variable> all = captured_variables(where);
  std::erase_if(all, [](const Variable& v) { return !v.trainable(); });
  return all;
}

std::vector<Tensor> ConcreteFunction::operator()(const std::vector<Tensor>& parameters, SourceSite where) const {
  return composed(where, [&] {
    const std::vector<Tensor>& captures = captured_inputs();
    if (parameters.size() != num_parameters_) {
      throw invalid_argument("[{}] takes {} tensors, got {}", name(), num_parameters_, parameters.size());
    }
    std::vector<Tensor> all = parameters;
    all.insert(all.end(), captures.begin(), captures.end());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Node& n = *graph().inputs()[i];
      if (!parameters[i].defined() || parameters[i].dtype() != n.dtype() ||
          !n.shape().compatible_with(parameters[i].partial_shape())) {
        throw invalid_argument("[{}] argument {} must be {}{}, got {}", name(), i, dtype_name(n.dtype()),
                               n.shape().str(), function_detail::tensor_text(parameters[i]));
      }
    }
    function_detail::note_call(function_);
    return call_function(function_, all);
  });
}

}  // namespace runnel
