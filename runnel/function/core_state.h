#pragma once

// Internal: what a function remembers of its calls.
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runnel/function/function_core.h"

namespace runnel::function_detail {

struct Core::State {
  std::mutex mutex;              // of all that follows
  std::vector<TracePtr> traces;  // most recently used first
  std::vector<std::string> why;
  int traced = 0;
  bool variables_made = false;
  bool generalises = true;                                          // no size that was left open has failed
  std::map<std::vector<uint64_t>, std::map<uint32_t, int>> misses;  // per signature without dimensions, per dimension
};

}  // namespace runnel::function_detail
