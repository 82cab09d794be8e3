#pragma once

// Internal: who records a profile. There is one at a time, and only who began it ends it.
#include <string>

#include "runnel/base/profile.h"

namespace runnel::profiler {

enum class Owner { none, program, trace, environment };  // start(), summary::trace_on, RUNNEL_PROFILE

// An Error (already_exists) that says who has the recording under way.
void begin_recording(Owner owner, const std::string& logdir);
// Of the recording that `owner` began.
bool is_recording(Owner owner);
struct Ended {
  profile::Recording recording;
  std::string logdir;
};
// With the steps that this thread is in, as far as they have come. An Error (unavailable) where `owner` has none.
Ended end_recording(Owner owner);
// Ends it so and writes it to `path`, or where that is empty to what begin_recording was given. Warns of lost events.
profile::Recording write_recording(Owner owner, const std::string& path = "");

}  // namespace runnel::profiler
