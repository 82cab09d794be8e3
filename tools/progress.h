#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
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

// Shows a bar once the work has taken a second.
class SlowProgress {
 public:
  void update(const std::string& what, uint64_t done, uint64_t total) {
    if (!line_ && std::chrono::steady_clock::now() - begun_ < std::chrono::seconds(1)) return;
    if (!line_) line_.emplace();
    line_->update(what, done, total);
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<ProgressLine> line_;
};

}  // namespace runnel::tools
