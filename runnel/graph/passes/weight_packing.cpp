// Where an op wants a variable's value in another layout (OpDef::packed), the rearranged copy is kept with the variable
// for every function that wants the same, until the variable changes. Not where the function itself changes the
// variable: the copy would serve once.
#include <set>

#include "runnel/graph/passes/pass.h"
#include "runnel/op/registry.h"

namespace runnel {
namespace {

// The resources that the graph may change; all of them where a node calls a function with effects.
struct Written {
  std::set<const Node*> resources;
  bool all = false;

  explicit Written(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (!has_side_effect(*node)) continue;
      all = all || !functions_of(*node).empty();
      for (const NodeOutput& in : node->inputs) {
        if (in.node->dtype(in.index) == DType::resource) resources.insert(in.node);
      }
    }
  }
  bool contains(const Node* resource) const { return all || resources.contains(resource); }
};

}  // namespace

bool pack_weights(Graph& graph) {
  const Written written(graph);
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!node->op->packed || !node->inferred) continue;
    const Node* read = node->inputs[1].node;
    if (!read->is("ReadVariableOp") || !read->inputs[0].node->is("_Arg")) continue;
    if (written.contains(read->inputs[0].node)) continue;
    NodeView view(graph, *node);
    if (!node->op->packs(view.context())) continue;
    node->op = &registry().get(node->op->packed);
    node->inputs[1] = read->inputs[0];
    for (Node* before : read->control_inputs) node->control_inputs.push_back(before);
    changed = true;
  }
  return changed;
}

}  // namespace runnel
