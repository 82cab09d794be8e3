#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runnel/base/error.h"

namespace runnel::test {

// What `body` writes to standard error: warnings.
template <class F>
std::string told_by(F body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

// The message of the Error that `body` throws.
template <class F>
std::string refusal_of(F body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace runnel::test
