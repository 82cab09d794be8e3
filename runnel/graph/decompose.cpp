#include "runnel/graph/decompose.h"

#include <algorithm>

#include "runnel/graph/tracer.h"

namespace runnel {

std::shared_ptr<const Graph> decomposed(const Graph& graph) {
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const auto& n) { return n->op->decompose != nullptr; })) {
    return graph.shared_from_this();
  }
  const UnloggedHandles unlogged;
  Tracer tracer(graph.name());
  tracer.graph()->keep = graph.keep;
  std::vector<std::vector<Tensor>> values(nodes.size());
  for (const Node* input : graph.inputs()) {
    const Tensor parameter = tracer.add_parameter(input->dtype(), input->shape(), input->name);
    node_symbol(parameter)->output().node->values[0] = input->values[0];
    values[static_cast<size_t>(input->id)] = {parameter};
  }
  tracer.open();
  for (const auto& node : nodes) {
    std::vector<Tensor>& out = values[static_cast<size_t>(node->id)];
    if (node->is("_Arg")) continue;
    if (node->is("Const")) {
      out = {
          symbolic(tracer.graph(), {tracer.graph()->add_constant(node->attrs_as<ConstAttrs>().value, node->where), 0})};
      continue;
    }
    std::vector<Tensor> inputs;
    for (const NodeOutput& v : node->inputs) {
      inputs.push_back(values[static_cast<size_t>(v.node->id)][static_cast<size_t>(v.index)]);
    }
    if (node->op->decompose) {
      out = node->op->decompose(inputs, node->attrs.get());
      continue;
    }
    std::vector<const Tensor*> in;
    for (const Tensor& t : inputs) in.push_back(&t);
    out.resize(static_cast<size_t>(node->num_outputs()));
    dispatch(*node->op, in, node->attrs.get(), out.data(), node->num_outputs(), node->where);
  }
  std::vector<Tensor> outputs;
  for (const NodeOutput& v : graph.outputs()) {
    outputs.push_back(values[static_cast<size_t>(v.node->id)][static_cast<size_t>(v.index)]);
  }
  tracer.set_outputs(outputs);
  tracer.close();
  return tracer.graph();
}

}  // namespace runnel
