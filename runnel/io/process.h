#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"

namespace runnel::io {

RUNNEL_API bool program_exists(const std::string& name);  // on PATH, or as a path

struct ProcessResult {
  int status = 0;  // the exit status; 128 + the signal if one ended it
  bool timed_out = false;
  std::string output;  // the last few kilobytes of standard output and error together
};

// Runs a program without a shell and without input, calling `tick` some ten times a second; after `timeout`
// the program and what it started are killed.
RUNNEL_API ProcessResult run_process(const std::vector<std::string>& command, std::chrono::seconds timeout,
                                     FunctionRef<void()> tick);

}  // namespace runnel::io
