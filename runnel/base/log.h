#pragma once

// Internal: messages for people on standard error, "runnel warning: ..." on a line each. Warnings and errors are
// written unless RUNNEL_LOG (silent, error, warning, info, debug) names another level.
#include <atomic>
#include <string_view>
#include <utility>

#include "runnel/base/format.h"

namespace runnel {

enum class LogLevel { silent, error, warning, info, debug };

// The level named by the text of RUNNEL_LOG; an unset or unknown one is warning.
RUNNEL_API LogLevel log_level_from(const char* text);
RUNNEL_API LogLevel log_level();
RUNNEL_API void set_log_level(LogLevel level);
RUNNEL_API void write_log(LogLevel level, std::string_view message);  // whatever the level is: call the ones below

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
  if (level <= log_level()) write_log(level, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::error, text, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::warning, text, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::info, text, std::forward<Args>(args)...);
}
template <class... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::debug, text, std::forward<Args>(args)...);
}

// `static Once once; if (once.first()) log_warning(...)`: for what would repeat with every step.
class Once {
 public:
  bool first() { return !done_.test(std::memory_order_relaxed) && !done_.test_and_set(std::memory_order_relaxed); }

 private:
  std::atomic_flag done_;
};

}  // namespace runnel
