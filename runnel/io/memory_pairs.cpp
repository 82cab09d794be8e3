#include "runnel/io/memory_pairs.h"

#include <unordered_map>

namespace runnel::io {

std::vector<MemoryChange> pair_memory(const std::vector<profile::MemorySample>& samples) {
  std::vector<MemoryChange> changes(samples.size());
  std::unordered_map<int64_t, std::vector<size_t>> held;  // by size: allocations that nobody released yet
  for (size_t i = 1; i < samples.size(); ++i) {
    const int64_t bytes = samples[i].live_bytes - samples[i - 1].live_bytes;
    changes[i].bytes = bytes;
    if (bytes > 0) {
      held[bytes].push_back(i);
    } else if (bytes < 0) {
      const auto same = held.find(-bytes);
      if (same == held.end() || same->second.empty()) continue;
      const size_t allocation = same->second.back();
      same->second.pop_back();
      changes[i].partner = static_cast<int64_t>(allocation);
      changes[allocation].partner = static_cast<int64_t>(i);
    }
  }
  return changes;
}

}  // namespace runnel::io
