#pragma once

// Internal: which allocation of a profile a release gives back. A recording knows only how much memory is in use after
// each, so a release belongs to the last allocation of its size that is still there.
#include <cstdint>
#include <vector>

#include "runnel/base/profile.h"

namespace runnel::io {

struct MemoryChange {
  int64_t bytes = 0;  // more than before (0 of the first sample, which says what was there)
  // Of a release, the sample that allocated; of an allocation, the one that released. -1: not in the recording.
  int64_t partner = -1;
};

// One for each sample.
RUNNEL_API std::vector<MemoryChange> pair_memory(const std::vector<profile::MemorySample>& samples);

}  // namespace runnel::io
