#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace runnel::tools {

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (line_open_) std::fputc('\n', stderr);
}

void ProgressLine::update(const std::string& what, uint64_t done, uint64_t total) {
  auto now = Clock::now();
  bool fresh = what != what_;
  if (fresh) {
    if (line_open_) std::fputc('\n', stderr);
    line_open_ = false;
    what_ = what;
    started_ = now;
  }
  if (!terminal_) {
    if (fresh) fmt::print(stderr, "  {}\n", what_);
    return;
  }
  bool complete = total > 0 && done == total;
  if (!fresh && !complete && now - drawn_ < std::chrono::milliseconds(80)) return;
  drawn_ = now;
  draw(done, total);
}

void ProgressLine::draw(uint64_t done, uint64_t total) {
  constexpr uint64_t width = 30;
  double megabytes = static_cast<double>(done) / 1e6;
  std::string state;
  if (total > 0) {
    uint64_t filled = std::min(done, total) * width / total;
    state = fmt::format("[{:<{}}] {:3}%  {:.1f} MB", std::string(filled, '='), width,
                        std::min(done, total) * 100 / total, megabytes);
  } else if (done > 0) {
    state = fmt::format("{:.1f} MB", megabytes);
  } else {
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
    state = fmt::format("{} s", seconds);
  }
  fmt::print(stderr, "\r\033[K  {:<28} {}", what_, state);  // the code clears the rest of the line
  std::fflush(stderr);
  line_open_ = true;
}

}  // namespace runnel::tools
