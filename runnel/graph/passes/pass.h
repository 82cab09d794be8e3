#pragma once

#include <vector>

#include "runnel/graph/graph.h"
#include "runnel/graph/plan_options.h"

namespace runnel {

// A change of a graph that keeps what it computes. An exact pass keeps every bit; others keep results within 8 ulp per
// op, and NaN and infinities where they are.
struct Pass {
  const char* name;
  bool PlanOptions::*enabled;
  bool exact;
  bool (*run)(Graph& graph);  // did it change anything? Null: the executor does it when it plans.
};

RUNNEL_API const std::vector<Pass>& all_passes();

// Runs the passes that the graph's plan_options leave on until none changes anything.
RUNNEL_API void optimize(Graph& graph);
// The same with the verifier after every pass: for tests.
RUNNEL_API void optimize_and_verify(Graph& graph);

RUNNEL_API bool fold_constants(Graph& graph);
RUNNEL_API bool simplify_algebra(Graph& graph);
RUNNEL_API bool merge_common_subexpressions(Graph& graph);
RUNNEL_API bool fuse_activations(Graph& graph);
RUNNEL_API bool pack_weights(Graph& graph);
RUNNEL_API bool fuse_updates(Graph& graph);
RUNNEL_API bool hoist_updates(Graph& graph);

// For passes: turns the node into a constant.
void make_constant(Node& node, const Tensor& value);

// For passes: what a shape function and its like see of a node.
class NodeView {
 public:
  NodeView(Graph& graph, const Node& node);
  InferContext& context() { return context_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> inputs_;
  InferContext context_;
};

// For passes: who uses the outputs of nodes.
class Uses {
 public:
  explicit Uses(const Graph& graph);
  // The only user of the node's only output, which is its input 0 and nothing else; null where it is not so.
  Node* only(const Node& node) const;

 private:
  struct Entry {
    int count = 0;
    Node* user = nullptr;
  };
  std::vector<Entry> entries_;  // by id
};

}  // namespace runnel
