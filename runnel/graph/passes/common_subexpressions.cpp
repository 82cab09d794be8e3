// Nodes that compute the same are one.
#include <cstring>
#include <map>
#include <string>

#include "runnel/graph/passes/pass.h"

namespace runnel {
namespace {

constexpr size_t kMostBytes = 4096;  // larger constants are told apart by where they are

void put(std::string& key, const void* bytes, size_t n) { key.append(static_cast<const char*>(bytes), n); }
template <class T>
void put(std::string& key, const T& value) {
  put(key, &value, sizeof(value));
}

void put_tensor(std::string& key, const Tensor& t) {
  if (!t.defined()) return put(key, 0);
  put(key, t.dtype());
  put(key, t.rank());  // else the sizes of one could be the elements of another
  for (const int64_t d : t.shape()) put(key, d);
  if (is_plain(t.dtype()) && t.num_bytes() <= kMostBytes && t.device().is_host()) {
    put(key, t.raw(), t.num_bytes());
  } else {
    put(key, t.impl().get());
  }
}

void put_attr(std::string& key, const AttrValue& value) {
  if (const auto* t = std::get_if<Tensor>(&value)) return put_tensor(key, *t);
  if (const auto* f = std::get_if<FuncAttr>(&value)) return put(key, f->body.get());
  if (const auto* list = std::get_if<std::vector<FuncAttr>>(&value)) {
    put(key, list->size());
    for (const FuncAttr& f : *list) put(key, f.body.get());
    return;
  }
  if (const auto* number = std::get_if<double>(&value)) return put(key, *number);
  key += attr_to_string(value);
  key += '\0';
}

}  // namespace

bool merge_common_subexpressions(Graph& graph) {
  bool changed = false;
  std::map<std::string, Node*> seen;
  std::map<Node*, Node*> same;  // a node and the one that stands for it
  for (const auto& node : graph.nodes()) {
    for (NodeOutput& in : node->inputs) {
      if (auto it = same.find(in.node); it != same.end()) in.node = it->second;
    }
    if (node->op->stateful || node->is("_Arg") || node->is("Placeholder") || !node->control_inputs.empty()) continue;
    std::string key;
    put(key, node->op);
    put(key, node->inputs.size());
    for (const NodeOutput& in : node->inputs) {
      put(key, in.node);
      put(key, in.index);
    }
    for (const AttrSpec& spec : node->op->attrs.specs) put_attr(key, spec.get(node->attrs.get()));
    const auto [it, fresh] = seen.try_emplace(std::move(key), node.get());
    if (fresh) continue;
    same[node.get()] = it->second;
    changed = true;
  }
  if (!changed) return false;
  std::vector<NodeOutput> outputs = graph.outputs();
  for (NodeOutput& out : outputs) {
    if (auto it = same.find(out.node); it != same.end()) out.node = it->second;
  }
  graph.set_outputs(std::move(outputs));
  std::vector<bool> keep;
  for (const auto& node : graph.nodes()) keep.push_back(!same.contains(node.get()));
  graph.retain(keep);
  return true;
}

}  // namespace runnel
