#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace runnel::tools {

// Shows how far a task of several steps is, on standard error: one line redrawn in place on a terminal;
// otherwise a plain line when a step begins and nothing else.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(const std::string& what, uint64_t done, uint64_t total);

 private:
  void draw(uint64_t done, uint64_t total);

  using Clock = std::chrono::steady_clock;
  bool terminal_;
  std::string what_;
  Clock::time_point started_;
  Clock::time_point drawn_;
  bool line_open_ = false;
};

}  // namespace runnel::tools
