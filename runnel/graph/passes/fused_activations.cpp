// A product or convolution, the bias added to it and the activation after that become one op (OpDef::fused). Its kernel
// does with each block of the result what the ops did with the whole: the same bits.
#include <algorithm>
#include <string>

#include "runnel/graph/passes/pass.h"
#include "runnel/op/registry.h"

namespace runnel {
namespace {

// Is it the sum of `value` and a vector with an element per column of it?
bool adds_bias(const Node* node, const Node& value) {
  if (!node || !node->op->post_op || node->inputs.size() != 2 || node->op->post_op != std::string("BiasAdd")) {
    return false;
  }
  const AttrSpec* layout = node->op->attrs.find("data_format");
  if (layout && std::get<std::string>(layout->get(node->attrs.get())) == "NCHW") return false;
  const NodeOutput& bias = node->inputs[1];
  const PartialShape& columns = bias.node->shape(bias.index);
  if (!columns.is_static() || columns.rank() != 1 || !value.shape().has_rank() || value.shape().rank() < 2)
    return false;
  return columns[0] == value.shape()[value.shape().rank() - 1] && node->shape() == value.shape();
}

bool activates(const Node* node, const Node& value) {
  return node && node->op->post_op && node->inputs.size() == 1 && node->dtype() == value.dtype();
}

// Attributes of the fused op: those of the first op by their names, and what the chain says.
SharedAttrs fused_attrs(const OpDef& op, const Node& first, const Node* activation) {
  std::shared_ptr<void> attrs = op.attrs.make();
  for (const AttrSpec& spec : op.attrs.specs) {
    if (const AttrSpec* from = first.op->attrs.find(spec.name)) spec.set(attrs.get(), from->get(first.attrs.get()));
  }
  std::vector<std::string> names{"BiasAdd"};
  if (activation) {
    names.emplace_back(activation->op->post_op);
    if (const AttrSpec* alpha = activation->op->attrs.find("alpha")) {
      op.attrs.find("leakyrelu_alpha")->set(attrs.get(), alpha->get(activation->attrs.get()));
    }
  }
  op.attrs.find("fused_ops")->set(attrs.get(), names);
  return attrs;
}

}  // namespace

bool fuse_activations(Graph& graph) {
  std::vector<bool> keep(static_cast<size_t>(graph.num_nodes()), true);
  bool changed = false;
  const Uses uses(graph);
  for (const auto& first : graph.nodes()) {
    if (!first->op->fused || first->dtype() != DType::float32) continue;
    Node* bias = uses.only(*first);
    if (!adds_bias(bias, *first)) continue;
    Node* activation = uses.only(*bias);
    if (!activates(activation, *first)) activation = nullptr;
    Node* last = activation ? activation : bias;
    const OpDef& op = registry().get(first->op->fused);
    SharedAttrs attrs = fused_attrs(op, *first, activation);
    // The last node of the chain becomes the fused one: all it needs stands before it.
    std::vector<NodeOutput> inputs = first->inputs;
    inputs.push_back(bias->inputs[1]);
    for (Node* dropped : {first.get(), bias}) {
      if (dropped == last) continue;
      keep[static_cast<size_t>(dropped->id)] = false;
      for (Node* before : dropped->control_inputs) last->control_inputs.push_back(before);
    }
    last->inferred = first->inferred && bias->inferred && last->inferred;
    last->op = &op;
    last->attrs = std::move(attrs);
    last->inputs = std::move(inputs);
    last->where = first->where;
    changed = true;
  }
  if (changed) graph.retain(keep);
  return changed;
}

}  // namespace runnel
