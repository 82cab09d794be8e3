#pragma once

// Internal (never included by a public header): formatted errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <span>
#include <string>
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

// "1,2,3": the sizes and axes of messages. Compiled once, where fmt::join would be in every file.
std::string comma_separated(std::span<const int64_t> values);

}  // namespace runnel
