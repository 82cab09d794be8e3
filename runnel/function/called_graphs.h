#pragma once

// Internal: which functions are called, for summary::trace_on.
#include <atomic>
#include <memory>
#include <vector>

namespace runnel {
class GraphFunction;
using GraphFunctionPtr = std::shared_ptr<const GraphFunction>;
}  // namespace runnel

namespace runnel::function_detail {

extern constinit std::atomic<bool> collects_calls;

// From now on, on all threads; what was collected before is gone.
void collect_calls();
// Ends that. The functions that were called meanwhile, each once, in the order of their first calls. Those called in a
// trace are a part of its graph and not among them.
std::vector<GraphFunctionPtr> collected_calls();

void note_collected_call(const GraphFunctionPtr& f);
inline void note_call(const GraphFunctionPtr& f) {
  if (collects_calls.load(std::memory_order_relaxed)) [[unlikely]]
    note_collected_call(f);
}

}  // namespace runnel::function_detail
