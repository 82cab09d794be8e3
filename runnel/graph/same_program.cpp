#include "runnel/graph/same_program.h"

#include <algorithm>
#include <cstring>

#include "runnel/graph/graph_function.h"
#include "runnel/tensor/handle.h"

namespace runnel {
namespace {

const Node* differing_node(const Graph& a, const Graph& b);

bool same_function(const FuncAttr& a, const FuncAttr& b) {
  const GraphFunction* f = graph_function(a);
  const GraphFunction* g = graph_function(b);
  // Functions of the host are made anew by every trace: there is no telling whether they do the same.
  if (!f || !g || f == g) return (f == nullptr) == (g == nullptr);
  return differing_node(f->graph(), g->graph()) == nullptr;
}

bool same_value(const Tensor& a, const Tensor& b) {
  if (a.impl() == b.impl()) return true;
  if (!a.defined() || !b.defined() || a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::string) return a.to_vector<std::string>() == b.to_vector<std::string>();
  if (!is_plain(a.dtype()) || !a.device().is_host() || !b.device().is_host()) return true;  // cannot be read here
  return std::memcmp(a.raw(), b.raw(), a.num_bytes()) == 0;
}

bool same_attr(const AttrValue& a, const AttrValue& b) {
  if (const auto* t = std::get_if<Tensor>(&a)) return same_value(*t, std::get<Tensor>(b));
  if (const auto* f = std::get_if<FuncAttr>(&a)) return same_function(*f, std::get<FuncAttr>(b));
  if (const auto* list = std::get_if<std::vector<FuncAttr>>(&a)) {
    const auto& other = std::get<std::vector<FuncAttr>>(b);
    return std::equal(list->begin(), list->end(), other.begin(), other.end(), same_function);
  }
  if (const auto* x = std::get_if<double>(&a)) return std::memcmp(x, &std::get<double>(b), sizeof(double)) == 0;
  return attr_to_string(a) == attr_to_string(b);
}

bool same_node(const Node& a, const Node& b) {
  const auto same_input = [](const NodeOutput& x, const NodeOutput& y) {
    return x.node->id == y.node->id && x.index == y.index;
  };
  if (a.op != b.op || !std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same_input)) {
    return false;
  }
  return std::all_of(a.op->attrs.specs.begin(), a.op->attrs.specs.end(),
                     [&](const AttrSpec& spec) { return same_attr(spec.get(a.attrs.get()), spec.get(b.attrs.get())); });
}

const Node* differing_node(const Graph& a, const Graph& b) {
  const auto n = static_cast<size_t>(std::min(a.num_nodes(), b.num_nodes()));
  for (size_t i = 0; i < n; ++i) {
    if (!same_node(*a.nodes()[i], *b.nodes()[i])) return b.nodes()[i].get();
  }
  if (a.num_nodes() == b.num_nodes()) return nullptr;
  return (a.num_nodes() > b.num_nodes() ? a : b).nodes()[n].get();
}

bool same_captured(const Tensor& a, const Tensor& b) {
  const NodeSymbol* x = node_symbol(a);
  const NodeSymbol* y = node_symbol(b);
  if (x && y) return x->output() == y->output();
  if (a.impl() == b.impl()) return true;
  if (a.dtype() != DType::resource || b.dtype() != DType::resource) return false;
  const Object* object = referred_object(a);
  return object && object == referred_object(b);
}

}  // namespace

const Node* first_difference(const Tracer& a, const Tracer& b) {
  if (const Node* node = differing_node(*a.graph(), *b.graph())) return node;
  const std::vector<Node*>& inputs = b.graph()->inputs();
  const size_t parameters = inputs.size() - b.captures().size();
  for (size_t i = 0; i < b.captures().size(); ++i) {
    if (same_captured(a.captures()[i], b.captures()[i])) continue;
    // The input itself has no line of the program; the first node that reads it has.
    for (const auto& node : b.graph()->nodes()) {
      for (const NodeOutput& in : node->inputs) {
        if (in.node == inputs[parameters + i]) return node.get();
      }
    }
    return inputs[parameters + i];
  }
  return nullptr;
}

}  // namespace runnel
