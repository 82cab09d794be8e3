#include "runnel/io/profile_nesting.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace runnel::io {

ProfileNesting nest_events(const profile::Recording& recording, FunctionRef<bool(const profile::Event&)> counts) {
  const std::vector<profile::Event>& events = recording.events;
  ProfileNesting nesting;
  nesting.around.assign(events.size(), -1);
  for (size_t i = 0; i < events.size(); ++i) {
    if (counts(events[i])) nesting.order.push_back(i);
  }
  std::stable_sort(nesting.order.begin(), nesting.order.end(), [&](size_t a, size_t b) {
    return std::tie(events[a].begin_ns, events[b].end_ns) < std::tie(events[b].begin_ns, events[a].end_ns);
  });
  std::unordered_map<uint32_t, std::vector<size_t>> open;  // of each thread, from outside in
  for (const size_t i : nesting.order) {
    std::vector<size_t>& outer = open[events[i].thread];
    while (!outer.empty() && events[outer.back()].end_ns <= events[i].begin_ns) outer.pop_back();
    if (!outer.empty()) nesting.around[i] = static_cast<int64_t>(outer.back());
    outer.push_back(i);
  }
  return nesting;
}

std::vector<int64_t> own_times(const profile::Recording& recording, const ProfileNesting& nesting) {
  const std::vector<profile::Event>& events = recording.events;
  std::vector<int64_t> own(events.size(), 0);
  for (const size_t i : nesting.order) {
    own[i] += events[i].end_ns - events[i].begin_ns;
    if (nesting.around[i] < 0) continue;
    const auto outer = static_cast<size_t>(nesting.around[i]);
    // Files of others have events that end after the one around them: that part is not its time.
    own[outer] -= std::min(events[i].end_ns, events[outer].end_ns) - events[i].begin_ns;
  }
  return own;
}

}  // namespace runnel::io
