// A graph for people: as text, and as Graphviz's dot.
#include <functional>
#include <set>

#include "runnel/base/format.h"
#include "runnel/graph/graph.h"
#include "runnel/graph/graph_function.h"

namespace runnel {
namespace {

std::string value_name(const NodeOutput& v) {
  return v.node->num_outputs() == 1 ? "%" + v.node->name : fmt::format("%{}:{}", v.node->name, v.index);
}

std::string type_name(const Node& node, int i) { return dtype_name(node.dtype(i)) + node.shape(i).str(); }

std::string short_value(const Tensor& t) {
  std::string text = t.num_elements() <= 8 ? t.str() : fmt::format("{} elements", t.num_elements());
  if (text.starts_with("tf.Tensor(")) {
    text = text.substr(10);
    text = text.substr(0, text.rfind(", shape="));
  }
  std::string line;
  for (char c : text) line += c == '\n' ? ' ' : c;
  return line;
}

std::string attrs_text(const Node& node) {
  std::string text;
  for (const AttrSpec& spec : node.op->attrs.specs) {
    const AttrValue value = spec.get(node.attrs.get());
    const std::string written = std::holds_alternative<Tensor>(value) && std::get<Tensor>(value).defined()
                                    ? short_value(std::get<Tensor>(value))
                                    : attr_to_string(value);
    if (written == attr_to_string(spec.default_value)) continue;  // where it began, also if it has no default
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", spec.name, written);
  }
  return text.empty() ? "" : " {" + text + "}";
}

std::string file_and_line(const SourceSite& where) {
  if (where.line == 0) return "";
  std::string_view file = where.file;
  file.remove_prefix(file.rfind('/') + 1);
  return fmt::format("  # {}:{}", file, where.line);
}

void write(const Graph& g, std::string& text, std::vector<FuncAttr>& pending, std::set<const void*>& seen) {
  text += fmt::format("graph {}(", g.name());
  for (size_t i = 0; i < g.inputs().size(); ++i) {
    text += fmt::format("{}%{}: {}", i ? ", " : "", g.inputs()[i]->name, type_name(*g.inputs()[i], 0));
  }
  text += ") {\n";
  for (const auto& node : g.nodes()) {
    if (node->is("_Arg")) continue;
    std::string line = "  ";
    for (int i = 0; i < node->num_outputs(); ++i) {
      line += fmt::format("{}{}: {}", i ? ", " : "", value_name({node.get(), i}), type_name(*node, i));
    }
    if (node->num_outputs() == 0) line += "%" + node->name;
    line += fmt::format(" = {}(", node->op->name);
    bool first = true;
    for (const NodeOutput& in : node->inputs) {
      line += (first ? "" : ", ") + value_name(in);
      first = false;
    }
    for (const Node* in : node->control_inputs) {
      line += (first ? "^" : ", ^") + in->name;
      first = false;
    }
    text += line + ")" + attrs_text(*node) + file_and_line(node->where) + "\n";
    for (const FuncAttr& f : functions_of(*node)) {
      const GraphFunction* function = graph_function(f);
      if (function && seen.insert(&function->graph()).second) pending.push_back(f);
    }
  }
  text += "  return";
  for (size_t i = 0; i < g.outputs().size(); ++i) text += (i ? ", " : " ") + value_name(g.outputs()[i]);
  text += "\n}\n";
}

std::string escaped(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string Graph::to_text() const {
  std::string text;
  std::vector<FuncAttr> pending;
  std::set<const void*> seen{this};
  write(*this, text, pending, seen);
  for (size_t i = 0; i < pending.size(); ++i) {
    if (const GraphFunction* f = graph_function(pending[i])) {
      text += "\n";
      write(f->graph(), text, pending, seen);
    }
  }
  return text;
}

std::string Graph::to_dot() const {
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=\"sans-serif\"];\n", escaped(name_));
  for (const auto& node : nodes_) {
    std::string label = node->name;
    if (!node->name.starts_with(node->op->name)) label += "\\n" + node->op->name;
    for (int i = 0; i < node->num_outputs(); ++i) label += "\\n" + type_name(*node, i);
    const char* style = node->is("_Arg") ? ", style=filled, fillcolor=lightblue" : "";
    text += fmt::format("  n{} [label=\"{}\"{}];\n", node->id, escaped(label), style);
    for (const NodeOutput& in : node->inputs) text += fmt::format("  n{} -> n{};\n", in.node->id, node->id);
    for (const Node* in : node->control_inputs) {
      text += fmt::format("  n{} -> n{} [style=dashed];\n", in->id, node->id);
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    text +=
        fmt::format("  out{} [label=\"output {}\", shape=ellipse];\n  n{} -> out{};\n", i, i, outputs_[i].node->id, i);
  }
  return text + "}\n";
}

}  // namespace runnel
