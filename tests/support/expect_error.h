#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/base/error.h"

namespace runnel::test {

// Runs `body` and expects one runnel::Error with this code, whose message contains `text`.
template <class F>
void expect_error(F body, Code code, const std::string& text) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_STREQ(code_name(error.code()), code_name(code)) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
    return;
  }
  ADD_FAILURE() << "no error thrown; expected " << code_name(code) << " with \"" << text << '"';
}

}  // namespace runnel::test
