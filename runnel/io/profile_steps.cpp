#include "runnel/io/profile_steps.h"

#include <algorithm>
#include <tuple>

namespace runnel::io {

ProfileSteps::ProfileSteps(const profile::Recording& recording) {
  for (size_t i = 0; i < recording.events.size(); ++i) {
    const profile::Event& e = recording.events[i];
    if (e.kind == profile::Kind::step) steps_.push_back({i, e.thread, e.begin_ns, e.end_ns, e.step});
  }
  // Outer steps come before those inside them.
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return std::tie(a.thread, a.begin_ns, b.end_ns, a.event) < std::tie(b.thread, b.begin_ns, a.end_ns, b.event);
  });
  std::vector<Step> innermost;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const bool contains = i + 1 < steps_.size() && steps_[i + 1].thread == steps_[i].thread &&
                          steps_[i + 1].begin_ns < steps_[i].end_ns && steps_[i + 1].end_ns <= steps_[i].end_ns;
    if (!contains) innermost.push_back(steps_[i]);
  }
  steps_ = std::move(innermost);
  std::sort(steps_.begin(), steps_.end(),
            [](const Step& a, const Step& b) { return std::tie(a.begin_ns, a.event) < std::tie(b.begin_ns, b.event); });
  for (size_t i = 0; i < steps_.size(); ++i) {
    by_thread_[steps_[i].thread].push_back(static_cast<int64_t>(i));
    by_number_[steps_[i].number].push_back(static_cast<int64_t>(i));
  }
}

int64_t ProfileSteps::of(const profile::Event& event) const {
  // The last step of the list that begins no later than the event.
  const auto last_begun = [&](const std::vector<int64_t>& list) -> int64_t {
    const auto after = std::upper_bound(list.begin(), list.end(), event.begin_ns, [&](int64_t at, int64_t i) {
      return at < steps_[static_cast<size_t>(i)].begin_ns;
    });
    return after == list.begin() ? -1 : *(after - 1);
  };
  if (const auto own = by_thread_.find(event.thread); own != by_thread_.end()) {
    const int64_t i = last_begun(own->second);
    if (i >= 0) {
      const Step& step = steps_[static_cast<size_t>(i)];
      if (event.kind == profile::Kind::step) {
        if (step.begin_ns == event.begin_ns && step.end_ns == event.end_ns && step.number == event.step) return i;
      } else if (event.begin_ns < step.end_ns) {
        return i;
      }
    }
  }
  if (event.kind == profile::Kind::step || event.step < 0) return -1;
  const auto numbered = by_number_.find(event.step);
  if (numbered == by_number_.end()) return -1;
  const int64_t i = last_begun(numbered->second);
  return i >= 0 ? i : numbered->second.front();
}

}  // namespace runnel::io
