#include "runnel/base/log.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace runnel {
namespace {

constexpr std::string_view kNames[] = {"silent", "error", "warning", "info", "debug"};

std::atomic<int>& level_slot() {
  static std::atomic<int> level{static_cast<int>(log_level_from(std::getenv("RUNNEL_LOG")))};
  return level;
}

}  // namespace

LogLevel log_level_from(const char* text) {
  if (text == nullptr) return LogLevel::warning;
  for (int i = 0; i < 5; ++i) {
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  }
  // Logging must not be what stops a program: say so and go on.
  write_log(LogLevel::error, fmt::format("RUNNEL_LOG must be silent, error, warning, info or debug, not '{}'", text));
  return LogLevel::warning;
}

LogLevel log_level() { return static_cast<LogLevel>(level_slot().load(std::memory_order_relaxed)); }
void set_log_level(LogLevel level) { level_slot().store(static_cast<int>(level), std::memory_order_relaxed); }

void write_log(LogLevel level, std::string_view message) {
  // One write per line, so that lines of several threads do not mix.
  const std::string line = fmt::format("runnel {}: {}\n", kNames[static_cast<int>(level)], message);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace runnel
