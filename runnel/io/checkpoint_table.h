#pragma once

// Internal: the index of a checkpoint, a table in LevelDB's format, as bytes.
#include <map>
#include <string>
#include <string_view>

#include "runnel/base/env.h"
#include "runnel/base/function_ref.h"

namespace runnel::io {

// Calls each(key, value) for all entries, in the order of the keys. Checksums and sizes are checked before the first
// call; `path` stands in messages.
RUNNEL_API void read_table(ByteSpan bytes, const std::string& path,
                           FunctionRef<void(std::string_view key, std::string_view value)> each);

// As TensorFlow writes it.
RUNNEL_API std::string write_table(const std::map<std::string, std::string>& entries);

}  // namespace runnel::io
