#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "runnel/base/error.h"

namespace runnel::test {

inline std::string message_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace runnel::test

// The mistake stands on the line of the macro; the message names it and no line of the library.
#define EXPECT_NAMES_THIS_LINE(...)                                                                                \
  EXPECT_THAT(::runnel::test::message_of([&] { static_cast<void>(__VA_ARGS__); }),                                 \
              ::testing::AllOf(::testing::HasSubstr(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ")"), \
                               ::testing::Not(::testing::ContainsRegex("at [^)]*/runnel/[a-z]+/[a-z0-9_/]+[.]"))))
