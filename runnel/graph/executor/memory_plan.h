#pragma once

#include <cstdint>
#include <vector>

#include "runnel/base/export.h"

namespace runnel {

// A value that needs memory from step `begin` to step `end`, both included.
struct MemoryRequest {
  int64_t bytes;
  int begin, end;
};

// Where the values stand in one block of memory, so that no two that live at the same time overlap.
struct MemoryPlan {
  std::vector<int64_t> offsets;  // of the requests; multiples of kMemoryAlign
  int64_t size = 0;              // of the block
};

inline constexpr int64_t kMemoryAlign = 64;

// The same requests give the same plan.
RUNNEL_API MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests);
// The largest sum of bytes that live at the same time: no plan is smaller.
RUNNEL_API int64_t largest_live(const std::vector<MemoryRequest>& requests);

}  // namespace runnel
