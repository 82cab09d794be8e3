// Nodes of constants become constants.
#include "runnel/base/error.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/graph/tracer.h"

namespace runnel {
namespace {

constexpr int64_t kMostElements = 16384;  // a larger result is cheaper to compute than to keep

bool may_fold(const Node& node) {
  return !node.op->stateful && !node.is("Const") && !node.is("_Arg") && !node.is("Placeholder") &&
         node.num_outputs() == 1 && is_plain(node.dtype()) && node.control_inputs.empty();
}

}  // namespace

bool fold_constants(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!may_fold(*node)) continue;
    if (node->values[0].defined()) {  // known since the trace: the shape of a static shape, and what follows from it
      make_constant(*node, node->values[0]);
      changed = true;
      continue;
    }
    if (node->inputs.empty()) continue;
    if (node->shape().is_static() && Shape(node->shape()).num_elements() > kMostElements) continue;
    std::vector<const Tensor*> in;
    for (const NodeOutput& v : node->inputs) {
      if (v.node->is("Const")) in.push_back(&v.node->attrs_as<ConstAttrs>().value);
    }
    if (in.size() != node->inputs.size()) continue;
    try {
      const OutsideTrace outside;
      Tensor value;
      dispatch(*node->op, in, node->attrs.get(), &value, 1, node->where);
      if (value.num_elements() > kMostElements) continue;
      make_constant(*node, value);
      changed = true;
    } catch (const Error&) {  // fails when the graph runs, if it gets there
    }
  }
  return changed;
}

}  // namespace runnel
