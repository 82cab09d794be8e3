#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::io {

// Does one name (no slashes) fit: * is any characters, ? any one, [a-z] and [!a-z] one of a set, \ takes the next as it
// is.
RUNNEL_API bool matches_pattern(std::string_view name, std::string_view pattern);

// The paths of files and folders that fit a pattern, sorted; each part between slashes is matched by itself. Names that
// begin with a dot are found only by patterns that do. Nothing found is an empty list; a folder that is missing too.
RUNNEL_API std::vector<std::string> matching_paths(const std::string& pattern, Env& env = Env::posix());

}  // namespace runnel::io
