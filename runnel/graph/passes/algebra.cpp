// Ops that give back an input: x * 1, x / 1, x - 0, casts and reshapes to what is there already. Each op says itself
// when it does (OpDef::same_as).
#include <map>

#include "runnel/graph/passes/pass.h"

namespace runnel {

bool simplify_algebra(Graph& graph) {
  bool changed = false;
  std::map<const Node*, NodeOutput> same;
  const auto follow = [&](NodeOutput& v) {
    if (auto it = same.find(v.node); it != same.end()) {
      v = it->second;
      changed = true;
    }
  };
  for (const auto& node : graph.nodes()) {
    for (NodeOutput& in : node->inputs) follow(in);
    if (!node->op->same_as || node->num_outputs() != 1) continue;
    NodeView view(graph, *node);
    const int input = node->op->same_as(view.context());
    if (input >= 0) same[node.get()] = node->inputs[static_cast<size_t>(input)];
  }
  std::vector<NodeOutput> outputs = graph.outputs();
  for (NodeOutput& out : outputs) follow(out);
  graph.set_outputs(std::move(outputs));
  return changed;
}

}  // namespace runnel
