#pragma once

// Internal: training steps, which the events of profiles count to.
#include <cstdint>
#include <string>

#include "runnel/base/profile_scope.h"
#include "runnel/tensor/thread_context.h"

namespace runnel::profile {

// A step of this thread, from here to the end of the block. Where a recording begins or stops within it, the part
// between is recorded.
class StepScope {
 public:
  StepScope(std::string name, int64_t number)
      : name_(std::move(name)), number_(number), outer_(thread_context().step), scope_(this) {}
  ~StepScope() { record(); }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

  int64_t number() const { return number_; }
  void set_detail(std::string detail) { detail_ = std::move(detail); }
  void drop() { dropped_ = true; }  // it turned out to be none
  // For those who stop a recording: puts the steps that this thread is in into it, as far as they have come.
  static void record_open_steps();

 private:
  void record();

  const std::string name_;
  std::string detail_;
  const int64_t number_;
  int64_t begin_ticks_ = now_ticks();
  bool dropped_ = false;
  StepScope* const outer_;
  const ContextScope<&ThreadContext::step> scope_;
};

// That of this thread, or -1.
inline int64_t current_step() {
  const StepScope* step = thread_context().step;
  return step ? step->number() : -1;
}

}  // namespace runnel::profile
