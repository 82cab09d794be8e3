#include "runnel/tensor/object_graph.h"

#include <deque>
#include <unordered_map>

namespace runnel {
namespace {

// A walk, with the path on which every object was first met.
class GraphWalk {
 public:
  GraphWalk(Trackable& root, const std::vector<Trackable::Edge>& attached) {
    meet(root.node(), "");
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      std::vector<Trackable::Edge> edges = graph_.nodes[at].object->children();
      if (at == 0) edges.insert(edges.end(), attached.begin(), attached.end());
      for (const Trackable::Edge& edge : edges) {
        const std::string& here = paths_[at];
        const std::string name = escape_local_name(edge.name);
        const size_t child = meet(*edge.object, at == 0 ? name : here + "/" + name);
        graph_.nodes[at].children.push_back({edge.name, child});
      }
    }
    add_slots();
    for (size_t at = 0; at < graph_.nodes.size(); ++at) add_values(at);
    mark_values();
  }
  ObjectGraph take() { return std::move(graph_); }

 private:
  size_t meet(Trackable& object, std::string path) {
    const auto [known, fresh] = ids_.try_emplace(&object, graph_.nodes.size());
    if (fresh) {
      graph_.nodes.emplace_back().object = &object;
      paths_.push_back(std::move(path));
    }
    return known->second;
  }
  // Slots are named after the variable they are for; those of variables that are not in the graph are left out.
  void add_slots() {
    const size_t walked = graph_.nodes.size();
    for (size_t at = 0; at < walked; ++at) {
      for (const Trackable::Slot& slot : graph_.nodes[at].object->slot_variables()) {
        const auto variable = ids_.find(slot.variable);
        if (variable == ids_.end()) continue;
        const size_t id = meet(*slot.slot, paths_[variable->second] + "/.OPTIMIZER_SLOT/" + paths_[at] + "/" +
                                               escape_local_name(slot.name));
        graph_.nodes[at].slot_variables.push_back({variable->second, slot.name, id});
      }
    }
  }
  void add_values(size_t at) {
    for (SavableValue& value : graph_.nodes[at].object->savable_values()) {
      std::string key = paths_[at] + "/.ATTRIBUTES/" + escape_local_name(value.name);
      graph_.nodes[at].attributes.push_back({std::move(value), std::move(key)});
    }
  }
  void mark_values() {
    std::vector<std::vector<size_t>> parents(graph_.nodes.size());
    std::deque<size_t> open;
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      for (const ObjectGraph::Child& child : graph_.nodes[at].children) parents[child.node].push_back(at);
      if (!graph_.nodes[at].attributes.empty() || !graph_.nodes[at].slot_variables.empty()) open.push_back(at);
    }
    while (!open.empty()) {
      const size_t at = open.front();
      open.pop_front();
      if (std::exchange(graph_.nodes[at].has_checkpoint_values, true)) continue;
      open.insert(open.end(), parents[at].begin(), parents[at].end());
    }
  }

  ObjectGraph graph_;
  std::vector<std::string> paths_;
  std::unordered_map<const Trackable*, size_t> ids_;
};

}  // namespace

ObjectGraph ObjectGraph::of(Trackable& root, const std::vector<Trackable::Edge>& attached) {
  return GraphWalk(root, attached).take();
}

std::string short_key(std::string_view checkpoint_key) {
  constexpr std::string_view kEnd = "/.ATTRIBUTES/VARIABLE_VALUE";
  if (checkpoint_key.ends_with(kEnd)) checkpoint_key.remove_suffix(kEnd.size());
  return std::string(checkpoint_key);
}

std::string escape_local_name(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '.') {
      escaped += "..";
    } else if (c == '/') {
      escaped += ".S";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace runnel
