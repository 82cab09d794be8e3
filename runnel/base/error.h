#pragma once

#include <stdexcept>
#include <string>

#include "runnel/base/export.h"

namespace runnel {

// TensorFlow's (and gRPC's) canonical codes, same numbers.
enum class Code {
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
};

RUNNEL_API const char* code_name(Code code);  // "INVALID_ARGUMENT"

// The one exception type of the public API. The message names the op or file, the shapes or offset,
// and where it helps, what to do.
class RUNNEL_API Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace runnel
