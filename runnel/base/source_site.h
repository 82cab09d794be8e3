#pragma once

#include <cstdint>
#include <string>

#include "runnel/base/export.h"

namespace runnel {

// A place in a program that calls us: errors name it. C++ callers get it by a default argument,
//   void f(SourceSite where = SourceSite::current());
// another language fills it in; `file` and `function` must then live as long as whatever keeps the site (graphs do).
// No aggregate: texts in braces, an argument of the user, are not taken for a place.
struct SourceSite {
  constexpr SourceSite() = default;
  constexpr explicit SourceSite(const char* file, const char* function, uint32_t line)
      : file(file), function(function), line(line) {}

  const char* file = "";
  const char* function = "";
  uint32_t line = 0;  // 0: not known

  // Not consteval: GCC 12 would evaluate it where the default argument stands and not where the function is called.
  static constexpr SourceSite current(const char* file = __builtin_FILE(), const char* function = __builtin_FUNCTION(),
                                      uint32_t line = __builtin_LINE()) {
    return SourceSite(file, function, line);
  }
  bool known() const { return line > 0; }
  // " (at main.cpp:12)", what error messages end with; empty when the place is not known.
  RUNNEL_API std::string at() const;
};

// The same for calls with arguments in braces: nothing converts to it, so that no argument is taken for the place.
struct CallSite {
  explicit CallSite(const SourceSite& site) : site(site) {}
  SourceSite site;
};

}  // namespace runnel
