#include "tools/ckpt_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runnel/base/format.h"
#include "runnel/track/object_graph_bytes.h"
#include "tools/ckpt_files.h"

namespace runnel::tools {
namespace {

constexpr std::string_view kAttributes = "/.ATTRIBUTES/", kSlot = "/.OPTIMIZER_SLOT/";

std::string unescape_local_name(std::string_view name) {
  std::string plain;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '.' && i + 1 < name.size()) {
      plain += name[++i] == 'S' ? '/' : name[i];
    } else {
      plain += name[i];
    }
  }
  return plain;
}

// The names on the way to the object of a value. Nothing for slots, to which no edges lead.
std::optional<std::vector<std::string>> path_of(std::string_view key) {
  const size_t end = key.rfind(kAttributes);
  if (end == std::string_view::npos || key.find(kSlot) != std::string_view::npos) return {};
  std::vector<std::string> names;
  std::string_view path = key.substr(0, end);
  while (true) {
    const size_t at = path.find('/');
    names.emplace_back(path.substr(0, at));
    if (at == std::string_view::npos) return names;
    path.remove_prefix(at + 1);
  }
}

using EdgePlace = std::pair<size_t, size_t>;  // the node, and which of its children

// The edges of a path; fewer than it has names where the graph does not lead there.
std::vector<EdgePlace> edges_along(const ObjectGraph& graph, const std::vector<std::string>& path) {
  std::vector<EdgePlace> edges;
  size_t at = 0;
  for (const std::string& name : path) {
    const auto& children = graph.nodes[at].children;
    const auto found = std::find_if(children.begin(), children.end(),
                                    [&](const auto& child) { return escape_local_name(child.name) == name; });
    if (found == children.end()) break;
    edges.emplace_back(at, static_cast<size_t>(found - children.begin()));
    at = found->node;
  }
  return edges;
}

const ObjectGraph::Child* child_named(const ObjectGraph::Node& node, const std::string& name) {
  const auto found = std::find_if(node.children.begin(), node.children.end(),
                                  [&](const ObjectGraph::Child& child) { return child.name == name; });
  return found == node.children.end() ? nullptr : &*found;
}

// Adds graphs to one, beginning at the roots.
class GraphUnion {
 public:
  void add(const ObjectGraph& graph) {
    place_.assign(graph.nodes.size(), kNowhere);
    if (merged_.nodes.empty()) merged_.nodes.emplace_back();
    if (graph.nodes.empty()) return;
    put(0, 0, "the root");
    follow(graph);
    for (size_t at = 0; at < graph.nodes.size(); ++at) add_slots(graph, at);
  }
  ObjectGraph take() { return std::move(merged_); }

 private:
  static constexpr size_t kNowhere = static_cast<size_t>(-1);

  void put(size_t node, size_t where, const std::string& name) {
    if (place_[node] == where) return;
    if (place_[node] != kNowhere) {
      throw make_error(Code::failed_precondition,
                       "[ckpt] the object graphs do not fit together: '{}' is one object in one of them and two in "
                       "another",
                       name);
    }
    place_[node] = where;
    open_.push_back(node);
  }
  // Copies the nodes that have got a place, and what can be reached from them.
  void follow(const ObjectGraph& graph) {
    while (!open_.empty()) {
      const size_t at = open_.back();
      open_.pop_back();
      const ObjectGraph::Node& node = graph.nodes[at];
      const size_t to = place_[at];
      ObjectGraph::Node& made = merged_.nodes[to];
      made.has_checkpoint_values = made.has_checkpoint_values || node.has_checkpoint_values;
      made.says_has_values = made.says_has_values && node.says_has_values;
      if (!made.registered_saver) made.registered_saver = node.registered_saver;
      for (const ObjectGraph::Attribute& attribute : node.attributes) {
        const bool there = std::any_of(made.attributes.begin(), made.attributes.end(),
                                       [&](const auto& other) { return other.value.name == attribute.value.name; });
        if (!there) made.attributes.push_back(attribute);
      }
      for (const ObjectGraph::Child& child : node.children) {
        if (const ObjectGraph::Child* known = child_named(merged_.nodes[to], child.name)) {
          put(child.node, known->node, child.name);
          continue;
        }
        if (place_[child.node] == kNowhere) put(child.node, new_node(), child.name);
        merged_.nodes[to].children.push_back({child.name, place_[child.node]});
      }
    }
  }
  void add_slots(const ObjectGraph& graph, size_t at) {
    if (place_[at] == kNowhere) return;
    for (const ObjectGraph::Slot& slot : graph.nodes[at].slot_variables) {
      const size_t variable = place_[slot.variable];
      if (variable == kNowhere) continue;
      const auto& known = merged_.nodes[place_[at]].slot_variables;
      const auto same = std::find_if(known.begin(), known.end(), [&](const ObjectGraph::Slot& other) {
        return other.variable == variable && other.name == slot.name;
      });
      if (same != known.end()) continue;
      if (place_[slot.slot] == kNowhere) put(slot.slot, new_node(), slot.name);
      follow(graph);
      merged_.nodes[place_[at]].slot_variables.push_back({variable, slot.name, place_[slot.slot]});
    }
  }
  size_t new_node() {
    merged_.nodes.emplace_back();
    return merged_.nodes.size() - 1;
  }

  ObjectGraph merged_;
  std::vector<size_t> place_;  // of the nodes of the graph that is being added
  std::vector<size_t> open_;
};

}  // namespace

std::optional<ObjectGraph> read_object_graph(const io::CheckpointReader& reader) {
  const io::CheckpointEntry* entry = reader.find(train::kObjectGraphKey);
  if (entry == nullptr) return {};
  const std::vector<std::string> texts = reader.read_strings(*entry);
  try {
    if (texts.size() != 1) throw make_error(Code::data_loss, "it is {} texts, not one", texts.size());
    return train::object_graph_from_bytes(texts[0]);
  } catch (const Error& error) {
    throw error.reworded(fmt::format("[ckpt] {}: the object graph cannot be read: {}", reader.prefix(), error.what()));
  }
}

std::vector<std::string> missing_keys(const io::CheckpointReader& reader, const ObjectGraph& graph) {
  std::vector<std::string> missing;
  for (const ObjectGraph::Node& node : graph.nodes) {
    for (const ObjectGraph::Attribute& attribute : node.attributes) {
      // A table's key is what those of its values begin with: KEY-keys, KEY-values.
      const auto entries = entries_from(reader, attribute.checkpoint_key);
      const bool there = !entries.empty() && entries[0].key.starts_with(attribute.checkpoint_key);
      if (!there) missing.push_back(attribute.checkpoint_key);
    }
  }
  return missing;
}

GraphRenames rename_in_graph(ObjectGraph& graph, const KeyChange& renamed) {
  GraphRenames done;
  std::map<EdgePlace, std::set<std::string>> wanted;
  for (ObjectGraph::Node& node : graph.nodes) {
    for (ObjectGraph::Attribute& attribute : node.attributes) {
      const std::string key = attribute.checkpoint_key;
      attribute.checkpoint_key = renamed(key);
      const auto path = path_of(key), new_path = path_of(attribute.checkpoint_key);
      if (!path) continue;
      const std::vector<EdgePlace> edges = edges_along(graph, *path);
      if (!new_path || new_path->size() != path->size() || edges.size() != path->size()) {
        if (attribute.checkpoint_key != key) done.not_done.push_back(key);
        continue;
      }
      for (size_t i = 0; i < edges.size(); ++i) wanted[edges[i]].insert((*new_path)[i]);
    }
  }
  for (const auto& [edge, names] : wanted) {
    ObjectGraph::Node& node = graph.nodes[edge.first];
    std::string& name = node.children[edge.second].name;
    const std::string old = escape_local_name(name);
    if (names.size() == 1 && *names.begin() == old) continue;
    const std::string fresh = unescape_local_name(*names.begin());
    if (names.size() == 1 && child_named(node, fresh) == nullptr) {
      name = fresh;
      ++done.edges;
    } else {
      done.not_done.push_back(fmt::format("{} (the edge is to be {})", old, fmt::join(names, " and ")));
    }
  }
  return done;
}

ObjectGraph merge_graphs(const std::vector<ObjectGraph>& graphs) {
  GraphUnion all;
  for (const ObjectGraph& graph : graphs) all.add(graph);
  return all.take();
}

}  // namespace runnel::tools
