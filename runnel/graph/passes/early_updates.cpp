// Updates of variables, and the small computations that they need, run as soon as they can: a gradient then does not
// wait in memory for those of other variables. Every node stays after what it needs, so results do not change; and
// writes stay after what may fail or act on the world, as in the program.
#include <algorithm>
#include <map>
#include <set>

#include "runnel/graph/passes/pass.h"

namespace runnel {
namespace {

constexpr int64_t kTiny = 1024;  // bytes of the outputs of a node that costs nothing to run earlier

bool is_tiny(const Node& node) {
  int64_t bytes = 0;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!node.shape(i).is_static() || !is_plain(node.dtype(i))) return false;
    bytes += Shape(node.shape(i)).num_elements() * static_cast<int64_t>(dtype_size(node.dtype(i)));
  }
  return bytes <= kTiny;
}

// The handle of the variable that the node works on, and nothing else that has an order.
const Node* variable_of(const Node& node) {
  if (!functions_of(node).empty()) return nullptr;
  for (const NodeOutput& in : node.inputs) {
    if (in.node->dtype(in.index) == DType::resource) return in.node;
  }
  return nullptr;
}

bool may_move(const Node& node) {
  if (node.is("_Arg") || node.is("Const")) return true;  // no steps
  if (!functions_of(node).empty()) return false;
  if (!node.op->stateful) return is_tiny(node);
  return variable_of(node) && (node.op->many || is_tiny(node));
}

// May writes that follow not run before it, though nothing else says so?
bool holds_back(const Node& node) {
  if (node.is("_Arg") || node.is("Const")) return false;
  return !functions_of(node).empty() || (node.op->stateful ? !variable_of(node) : !node.inferred);
}

}  // namespace

bool hoist_updates(Graph& graph) {
  std::vector<int> place(static_cast<size_t>(graph.num_nodes()));  // a node moves up behind the node of this place
  std::map<const Node*, int> needed_until;                         // by handle: who uses values read from it
  bool any = false;
  for (const auto& node : graph.nodes()) {
    const auto id = static_cast<size_t>(node->id);
    place[id] = node->id;
    for (const NodeOutput& in : node->inputs) {
      if (in.node->op->reads_variable) {
        if (const Node* v = variable_of(*in.node)) needed_until[v] = std::max(needed_until[v], node->id);
      }
    }
  }
  int barrier = 0;
  for (const auto& node : graph.nodes()) {
    if (holds_back(*node)) barrier = node->id;
    if (!may_move(*node)) continue;
    const auto id = static_cast<size_t>(node->id);
    int after = 0;
    for (const NodeOutput& in : node->inputs) after = std::max(after, place[static_cast<size_t>(in.node->id)]);
    for (const Node* in : node->control_inputs) after = std::max(after, place[static_cast<size_t>(in->id)]);
    if (node->op->stateful && !node->op->reads_variable) {
      after = std::max(after, barrier);
      // A write while a value read before is in use would have to copy.
      for (const NodeOutput& in : node->inputs) {
        if (auto it = needed_until.find(in.node); it != needed_until.end() && it->second < node->id) {
          after = std::max(after, it->second);
        }
      }
    }
    place[id] = std::min(place[id], after);
    any = any || place[id] < node->id;
  }
  if (!any) return false;
  std::vector<Node*> order;
  for (const auto& node : graph.nodes()) order.push_back(node.get());
  std::stable_sort(order.begin(), order.end(), [&](const Node* a, const Node* b) {
    return place[static_cast<size_t>(a->id)] < place[static_cast<size_t>(b->id)];
  });
  bool changed = false;
  for (size_t i = 0; i < order.size(); ++i) changed = changed || order[i]->id != static_cast<int>(i);
  if (changed) graph.reorder(order);
  return changed;
}

}  // namespace runnel
