#pragma once

// Internal: which event of a profile happened inside which.
#include <cstdint>
#include <vector>

#include "runnel/base/function_ref.h"
#include "runnel/base/profile.h"

namespace runnel::io {

struct ProfileNesting {
  // The events that count, by begin; what is outside comes before what is inside.
  std::vector<size_t> order;
  // For each event of the recording the innermost one around it, of its thread and of those that count; -1: none.
  std::vector<int64_t> around;
};
RUNNEL_API ProfileNesting nest_events(const profile::Recording& recording,
                                      FunctionRef<bool(const profile::Event&)> counts);

// For each event that counts, its time without the events inside; 0 for others.
RUNNEL_API std::vector<int64_t> own_times(const profile::Recording& recording, const ProfileNesting& nesting);

}  // namespace runnel::io
