#pragma once

#include <cstddef>
#include <cstdint>

#include "runnel/base/export.h"

namespace runnel {

// Host memory for tensors, cached: a freed block is kept for the next request of its size class, so that a
// steady training step touches neither malloc nor the kernel. Blocks are 64-byte aligned. Small blocks live in
// a per-thread cache, large ones (with huge pages where the system has them) in a shared one.
namespace host_memory {

RUNNEL_API void* allocate(size_t bytes);
// `bytes` is what was asked for.
RUNNEL_API void release(void* block, size_t bytes) noexcept;

struct Stats {
  int64_t in_use = 0;       // bytes handed out in large blocks (over 64 KiB)
  int64_t cached = 0;       // bytes kept for reuse in the shared cache
  int64_t peak = 0;         // highest in_use since the last reset_peak()
  int64_t from_system = 0;  // how often memory was asked of the system
};
RUNNEL_API Stats stats();
RUNNEL_API void reset_peak();
// Gives the shared cache back to the system.
RUNNEL_API void trim();

}  // namespace host_memory
}  // namespace runnel
