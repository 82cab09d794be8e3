#pragma once

// Internal: which step of a profile an event belongs to. Numbers of steps are not unique (training and validation count
// apart), so steps are told by their place in time.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runnel/base/profile.h"

namespace runnel::io {

class RUNNEL_API ProfileSteps {
 public:
  // A step that contains steps on its thread (a Trace around fit) is none itself: what happens belongs to those inside.
  explicit ProfileSteps(const profile::Recording& recording);

  struct Step {
    size_t event;  // in the recording
    uint32_t thread;
    int64_t begin_ns, end_ns;
    int64_t number;
  };
  const std::vector<Step>& steps() const { return steps_; }  // in order of begin

  // The index of the event's step, -1 for none: of a step, its own. What happens on the thread of a step while it lasts
  // belongs to it; elsewhere the number of the event decides, and of steps with one number the last begun.
  int64_t of(const profile::Event& event) const;

 private:
  std::vector<Step> steps_;
  std::unordered_map<uint32_t, std::vector<int64_t>> by_thread_;
  std::unordered_map<int64_t, std::vector<int64_t>> by_number_;
};

}  // namespace runnel::io
