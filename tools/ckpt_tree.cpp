// runnel ckpt tree.
#include <fmt/format.h>

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "tools/ckpt.h"
#include "tools/ckpt_files.h"
#include "tools/ckpt_graph.h"
#include "tools/printing.h"

namespace runnel::tools {
namespace {

using io::CheckpointEntry;
using io::CheckpointReader;

Json node_json(const ObjectGraph::Node& node, size_t id) {
  Json json = {{"id", id}, {"children", Json::array()}};
  for (const auto& child : node.children) json["children"].push_back({{"name", child.name}, {"node", child.node}});
  json["attributes"] = Json::array();
  for (const auto& attribute : node.attributes) {
    json["attributes"].push_back({{"name", attribute.value.name},
                                  {"full_name", attribute.value.full_name},
                                  {"checkpoint_key", attribute.checkpoint_key}});
  }
  json["slot_variables"] = Json::array();
  for (const auto& slot : node.slot_variables) {
    json["slot_variables"].push_back({{"variable", slot.variable}, {"name", slot.name}, {"slot", slot.slot}});
  }
  json["has_checkpoint_values"] = node.has_checkpoint_values;
  return json;
}

// Every object once, where it is first met; lines are made without recursion, for a file may nest them as deep as it
// likes.
class TreePrinter {
 public:
  TreePrinter(const CheckpointReader& reader, const ObjectGraph& graph)
      : reader_(reader), graph_(graph), printed_as_(graph.nodes.size()) {}

  void print() {
    fmt::print("{}{}\n", reader_.prefix(), values_of(0));
    printed_as_[0] = "(root)";
    open(0, "", "");
    while (!open_.empty()) {
      Line line = std::move(open_.back());
      open_.pop_back();
      print_line(line);
    }
  }

 private:
  struct Line {
    std::string names;
    std::string path;    // of the object
    std::string before;  // the lines of what it is a part of
    bool last;
    size_t node;
  };

  void print_line(const Line& line) {
    const bool again = !printed_as_[line.node].empty();
    fmt::print("{}{}{}{}\n", line.before, line.last ? "└─ " : "├─ ", line.names,
               again ? " -> " + printed_as_[line.node] : values_of(line.node));
    if (again) return;
    printed_as_[line.node] = line.path;
    open(line.node, line.path, line.before + (line.last ? "   " : "│  "));
  }

  // Puts the lines of a node's parts on the stack, the first on top.
  void open(size_t id, const std::string& path, const std::string& before) {
    const ObjectGraph::Node& node = graph_.nodes[id];
    std::vector<Line> lines;
    for (const ObjectGraph::Child& child : node.children) {
      const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.node == child.node; });
      if (same != lines.end()) {
        same->names += ", " + child.name;
      } else {
        lines.push_back({child.name, path.empty() ? child.name : path + "/" + child.name, before, false, child.node});
      }
    }
    for (const ObjectGraph::Slot& slot : node.slot_variables) {
      const std::string name = fmt::format("{} of {}", slot.name, name_of(slot.variable));
      lines.push_back({name, name, before, false, slot.slot});
    }
    if (!lines.empty()) lines.back().last = true;
    open_.insert(open_.end(), std::make_move_iterator(lines.rbegin()), std::make_move_iterator(lines.rend()));
  }

  // A variable by its key, which is there also before its line is.
  std::string name_of(size_t id) const {
    const auto& attributes = graph_.nodes[id].attributes;
    if (attributes.empty()) return fmt::format("object {}", id);
    const std::string& key = attributes[0].checkpoint_key;
    return key.substr(0, key.rfind("/.ATTRIBUTES/"));
  }

  std::string values_of(size_t id) const {
    std::string text;
    for (const ObjectGraph::Attribute& attribute : graph_.nodes[id].attributes) {
      const std::string& key = attribute.checkpoint_key;
      const auto entries = entries_from(reader_, key);
      if (entries.empty() || !entries[0].key.starts_with(key))
        text += fmt::format("  {} MISSING", attribute.value.name);
      for (const CheckpointEntry& entry : entries) {
        if (!entry.key.starts_with(key)) break;
        const std::string suffix = entry.key.substr(key.size());
        const bool variable = attribute.value.name == "VARIABLE_VALUE" && suffix.empty();
        text += fmt::format("  {}{} {}", variable ? "" : attribute.value.name + suffix + " ",
                            io::checkpoint_dtype_name(entry.dtype), shape_text(entry.shape));
      }
    }
    return text;
  }

  const CheckpointReader& reader_;
  const ObjectGraph& graph_;
  std::vector<std::string> printed_as_;  // by node; empty: not yet
  std::vector<Line> open_;
};

}  // namespace

void ckpt_tree(const CkptArguments& arguments) {
  const CheckpointReader reader = open_checkpoint(arguments.path);
  const std::optional<ObjectGraph> graph = read_object_graph(reader);
  if (!graph) {
    throw make_error(Code::not_found,
                     "[ckpt] {} has no object graph: its keys are the names of variables, as TensorFlow 1 writes them; "
                     "`runnel ckpt ls {}` lists them",
                     reader.prefix(), reader.prefix());
  }
  if (!arguments.json) return TreePrinter(reader, *graph).print();
  Json json = {{"checkpoint", reader.prefix()}, {"nodes", Json::array()}};
  for (size_t id = 0; id < graph->nodes.size(); ++id) json["nodes"].push_back(node_json(graph->nodes[id], id));
  print_json(json);
}

}  // namespace runnel::tools
