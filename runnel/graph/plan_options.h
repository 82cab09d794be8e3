#pragma once

namespace runnel {

// How a graph is made ready to run: which passes it goes through, and what the executor does when it plans. All are on
// unless they are switched off for a function (FunctionOptions::plan); bodies and derivatives follow the function. What
// each does: docs/functions.md.
struct PlanOptions {
  bool constant_folding = true;
  bool algebra = true;
  bool common_subexpressions = true;
  bool dead_code = true;
  bool fused_activations = true;
  bool weight_packing = true;
  bool fused_updates = true;
  bool early_updates = true;
  bool parallel_branches = true;
  bool elementwise_blocks = true;
  bool compiled_chains = true;
  bool memory_plan = true;
  bool in_place = true;
};

}  // namespace runnel
