#pragma once

// Internal (never included by a public header): formatted errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "runnel/base/error.h"

namespace runnel {

template <class... Args>
Error make_error(Code code, fmt::format_string<Args...> text, Args&&... args) {
  return Error(code, fmt::format(text, std::forward<Args>(args)...));
}

template <class... Args>
Error invalid_argument(fmt::format_string<Args...> text, Args&&... args) {
  return Error(Code::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace runnel
