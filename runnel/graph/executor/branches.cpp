#include "runnel/graph/executor/branches.h"

#include <algorithm>

#include "runnel/graph/graph_function.h"

namespace runnel {
namespace {

constexpr int kDeepest = 8;  // of functions that call functions: a recursive one has no end

bool has_loop(const Node& node, int depth);

bool has_loop(const FuncAttr& f, int depth) {
  const GraphFunction* function = depth < kDeepest ? graph_function(f) : nullptr;
  if (!function) return false;
  const auto& nodes = function->graph().nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return has_loop(*node, depth + 1); });
}

bool has_loop(const Node& node, int depth) {
  if (node.is("StatelessWhile") || node.is("While")) return true;
  for (const AttrSpec& spec : node.op->attrs.specs) {
    const AttrValue& kind = spec.default_value;
    if (!std::holds_alternative<FuncAttr>(kind) && !std::holds_alternative<std::vector<FuncAttr>>(kind)) continue;
    const AttrValue value = spec.get(node.attrs.get());
    if (const auto* f = std::get_if<FuncAttr>(&value); f && has_loop(*f, depth)) return true;
    if (const auto* list = std::get_if<std::vector<FuncAttr>>(&value)) {
      if (std::any_of(list->begin(), list->end(), [&](const FuncAttr& f) { return has_loop(f, depth); })) return true;
    }
  }
  return false;
}

// Its outputs must not stand at planned places: the plan of memory goes by one step after the other.
bool is_branch(const Node& node) {
  return !node.op->stateful && node.op->forwards && node.control_inputs.empty() && has_loop(node, 0);
}

}  // namespace

BranchOrder order_branches(const Graph& graph, bool side_by_side) {
  BranchOrder order;
  for (const auto& node : graph.nodes()) order.nodes.push_back(node.get());
  order.group.assign(order.nodes.size(), 1);
  if (!side_by_side) return order;
  std::vector<bool> branch;  // by id
  for (const auto& node : graph.nodes()) branch.push_back(is_branch(*node));
  for (size_t i = 0; i < order.nodes.size(); ++i) {
    const Node* node = order.nodes[i];
    if (!branch[static_cast<size_t>(node->id)]) continue;
    // It may run as soon as all it needs is there: it joins the first group that begins after that.
    size_t earliest = 0;
    for (const NodeOutput& in : node->inputs) {
      const auto at = std::find(order.nodes.begin(), order.nodes.end(), in.node) - order.nodes.begin();
      earliest = std::max(earliest, static_cast<size_t>(at) + 1);
    }
    size_t leader = 0;
    while (leader < i && !(leader >= earliest && branch[static_cast<size_t>(order.nodes[leader]->id)])) {
      leader += order.group[leader];
    }
    if (leader >= i) continue;
    const size_t to = leader + order.group[leader];
    std::rotate(order.nodes.begin() + static_cast<long>(to), order.nodes.begin() + static_cast<long>(i),
                order.nodes.begin() + static_cast<long>(i) + 1);
    std::rotate(order.group.begin() + static_cast<long>(to), order.group.begin() + static_cast<long>(i),
                order.group.begin() + static_cast<long>(i) + 1);
    ++order.group[leader];
  }
  return order;
}

}  // namespace runnel
