#pragma once

#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::board {

// A folder whose runs are shown; with a name, their names begin with it.
struct LogDir {
  std::string name;
  std::string path;
};

// "logs", or several: "first:logs/a,second:logs/b". A text that is the path of something there is one folder, whatever
// characters it has. Of several, those without a name are named by the last part of their paths. The folders may be
// missing. An Error where a path is empty or two names are equal.
RUNNEL_API std::vector<LogDir> parse_logdirs(const std::string& text, Env& env = Env::posix());

// The name of a run: that of its folder, below the folder's own name if it has one.
RUNNEL_API std::string run_name(const LogDir& dir, const std::string& folder);

}  // namespace runnel::board
