// Ops that give back their input: x * 1, x / 1, x - 0, casts and reshapes to what is there already.
#include <cstring>
#include <map>
#include <optional>

#include "runnel/graph/passes/pass.h"

namespace runnel {
namespace {

// Is it a scalar constant of this value? (A scalar changes no shape.)
bool is_scalar(const NodeOutput& v, double wanted) {
  if (!v.node->is("Const")) return false;
  const Tensor& t = v.node->attrs_as<ConstAttrs>().value;
  if (t.num_elements() != 1 || t.rank() != 0) return false;
  bool equal = false;
  numbers.for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    // -0 is no 0 here: x - (-0) turns -0 into 0.
    const T value = static_cast<T>(static_cast<float>(wanted));
    equal = std::memcmp(t.data<T>(), &value, sizeof(T)) == 0;
  });
  return equal;
}

// What the node's only output equals, where that is one of its inputs.
std::optional<NodeOutput> same_as_input(const Node& node) {
  if (node.num_outputs() != 1 || node.inputs.empty()) return std::nullopt;
  const NodeOutput& x = node.inputs[0];
  if (node.is("Identity") || node.is("StopGradient")) return x;
  if (node.is("Cast") && x.node->dtype(x.index) == node.dtype()) return x;
  if (node.is("Reshape") && node.shape().is_static() && x.node->shape(x.index) == node.shape()) return x;
  if (node.inputs.size() != 2) return std::nullopt;
  const NodeOutput& y = node.inputs[1];
  if (node.is("Mul") && is_scalar(y, 1)) return x;
  if (node.is("Mul") && is_scalar(x, 1)) return y;
  if ((node.is("RealDiv") || node.is("Div")) && is_scalar(y, 1)) return x;
  if (node.is("Sub") && is_scalar(y, 0)) return x;
  return std::nullopt;
}

}  // namespace

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
    if (const auto input = same_as_input(*node)) same[node.get()] = *input;
  }
  std::vector<NodeOutput> outputs = graph.outputs();
  for (NodeOutput& out : outputs) follow(out);
  graph.set_outputs(std::move(outputs));
  return changed;
}

}  // namespace runnel
