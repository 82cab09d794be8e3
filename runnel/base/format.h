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

// Inside of a catch block: the Error that is being handled. Memory that is not there, and sizes that no container can
// have, are Errors too; every other exception goes on. Where code of the program may have thrown (`of_program`), all
// that is no Error goes on: it is the program's to catch.
RUNNEL_API Error current_error(bool of_program = false);

// "1,2,3": the sizes and axes of messages. Compiled once, where fmt::join would be in every file.
std::string comma_separated(std::span<const int64_t> values);

}  // namespace runnel
