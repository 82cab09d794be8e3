#pragma once

// Looking at what a profile has recorded.
#include <algorithm>
#include <string>
#include <vector>

#include "runnel/base/profile.h"

namespace runnel {

// What is recorded while f runs. It may throw, which is what it is then.
template <class F>
profile::Recording recorded(const F& f) {
  profile::start();
  try {
    f();
  } catch (...) {
    profile::stop();
    throw;
  }
  return profile::stop();
}

inline std::vector<profile::Event> events_of(const profile::Recording& recording, profile::Kind kind,
                                             const std::string& name = "") {
  std::vector<profile::Event> found;
  for (const profile::Event& event : recording.events) {
    if (event.kind == kind && (name.empty() || event.name == name)) found.push_back(event);
  }
  return found;
}

inline std::vector<std::string> names_of(const std::vector<profile::Event>& events) {
  std::vector<std::string> names;
  for (const profile::Event& event : events) names.push_back(event.name);
  return names;
}

inline std::string thread_of(const profile::Recording& recording, const profile::Event& event) {
  return recording.threads.at(event.thread).name;
}

inline bool is_inside(const profile::Event& inner, const profile::Event& outer) {
  return inner.begin_ns >= outer.begin_ns && inner.end_ns <= outer.end_ns;
}

}  // namespace runnel
