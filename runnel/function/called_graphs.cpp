#include "runnel/function/called_graphs.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "runnel/op/dispatch.h"

namespace runnel::function_detail {

constinit std::atomic<bool> collects_calls = false;

namespace {

struct CalledFunctions {
  std::mutex mutex;
  std::vector<GraphFunctionPtr> all;
};
CalledFunctions& called_functions() {
  static auto* const called = new CalledFunctions;  // functions may be called while static objects go
  return *called;
}

}  // namespace

void collect_calls() {
  const std::lock_guard lock(called_functions().mutex);
  called_functions().all.clear();
  collects_calls = true;
}

std::vector<GraphFunctionPtr> collected_calls() {
  const std::lock_guard lock(called_functions().mutex);
  collects_calls = false;
  return std::exchange(called_functions().all, {});
}

void note_collected_call(const GraphFunctionPtr& f) {
  if (current_interceptor() != nullptr) return;
  const std::lock_guard lock(called_functions().mutex);
  std::vector<GraphFunctionPtr>& all = called_functions().all;
  if (collects_calls && std::find(all.begin(), all.end(), f) == all.end()) all.push_back(f);
}

}  // namespace runnel::function_detail
