// Updates of variables by one rule with the same scalars (a step of an optimizer) become one op over lists of them
// (OpDef::many): one pass of the compute pool over all elements. Large variables are left alone: their gradients need
// not wait for the others in memory.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "runnel/graph/passes/pass.h"
#include "runnel/op/registry.h"

namespace runnel {
namespace {

constexpr int64_t kMostUpdatedBytes = 1 << 20;  // of a gradient

bool is_small(const Node& node) {
  for (const NodeOutput& in : node.inputs) {
    const PartialShape& shape = in.node->shape(in.index);
    if (in.node->dtype(in.index) == DType::resource) continue;
    if (!shape.is_static()) return false;
    if (Shape(shape).num_elements() * static_cast<int64_t>(dtype_size(in.node->dtype(in.index))) > kMostUpdatedBytes)
      return false;
  }
  return true;
}

// Updates that may become one: in the order of the graph, of different variables.
struct Group {
  std::vector<Node*> nodes;
  std::set<const Node*> resources;
};

std::string key_of(const Node& node, const OpDef& many) {
  std::string key = many.name;
  for (const AttrSpec& spec : node.op->attrs.specs) {
    key += '|';
    key += attr_to_string(spec.get(node.attrs.get()));
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const NodeOutput& in = node.inputs[i];
    key += '|';
    if (many.inputs[i].is_list()) {
      key += std::to_string(static_cast<int>(in.node->dtype(in.index)));
    } else {
      key += std::to_string(in.node->id) + ':' + std::to_string(in.index);
    }
  }
  return key;
}

// The group's last node takes the others in.
void merge(const Group& group, const OpDef& many, std::map<const Node*, Node*>& merged) {
  Node* last = group.nodes.back();
  std::vector<NodeOutput> inputs;
  for (size_t i = 0; i < many.inputs.size(); ++i) {
    if (!many.inputs[i].is_list()) {
      inputs.push_back(last->inputs[i]);
      continue;
    }
    for (const Node* node : group.nodes) inputs.push_back(node->inputs[i]);
  }
  for (Node* node : group.nodes) {
    if (node == last) continue;
    merged[node] = last;
    for (Node* before : node->control_inputs) last->control_inputs.push_back(before);
  }
  last->op = &many;
  last->inputs = std::move(inputs);
}

}  // namespace

bool fuse_updates(Graph& graph) {
  std::map<std::string, Group> open;
  std::vector<std::pair<Group, const OpDef*>> done;
  const auto close = [&](std::map<std::string, Group>::iterator it) {
    if (it->second.nodes.size() > 1) {
      const OpDef& many = registry().get(it->second.nodes[0]->op->many);
      done.emplace_back(std::move(it->second), &many);
    }
    return open.erase(it);
  };
  for (const auto& node : graph.nodes()) {
    // Updates move down to the last of their group, so a group ends where somebody waits for one of them.
    for (const Node* before : node->control_inputs) {
      for (auto it = open.begin(); it != open.end();) {
        const auto& nodes = it->second.nodes;
        it = std::find(nodes.begin(), nodes.end(), before) != nodes.end() ? close(it) : std::next(it);
      }
    }
    if (!node->op->many || !is_small(*node)) continue;
    const OpDef& many = registry().get(node->op->many);
    if (node->op == &many) continue;
    const std::string key = key_of(*node, many);
    std::set<const Node*> touched;
    for (const NodeOutput& in : node->inputs) {
      if (in.node->dtype(in.index) == DType::resource) touched.insert(in.node);
    }
    if (auto it = open.find(key); it != open.end()) {
      const bool again =
          std::any_of(touched.begin(), touched.end(), [&](const Node* r) { return it->second.resources.contains(r); });
      if (again) close(it);
    }
    Group& group = open[key];
    group.nodes.push_back(node.get());
    group.resources.insert(touched.begin(), touched.end());
  }
  for (auto it = open.begin(); it != open.end();) it = close(it);
  if (done.empty()) return false;
  std::map<const Node*, Node*> merged;
  for (const auto& [group, many] : done) merge(group, *many, merged);
  std::vector<bool> keep;
  for (const auto& node : graph.nodes()) {
    keep.push_back(!merged.contains(node.get()));
    for (Node*& before : node->control_inputs) {
      if (auto it = merged.find(before); it != merged.end()) before = it->second;
    }
  }
  graph.retain(keep);
  return true;
}

}  // namespace runnel
