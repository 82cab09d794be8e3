#pragma once

#include <vector>

#include "runnel/graph/graph.h"

namespace runnel {

// An order of a graph's nodes in which loops that do not need each other stand side by side, so that they can run at
// the same time; the others keep their order. Kernels share out their own work among the threads, a loop cannot: only
// loops, and conditionals and calls with a loop inside, gain by it.
struct BranchOrder {
  std::vector<const Node*> nodes;
  std::vector<size_t> group;  // per node: how many nodes from this one on run at the same time; 1: it runs alone
};
BranchOrder order_branches(const Graph& graph, bool side_by_side);

}  // namespace runnel
