#pragma once

#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::io {

RUNNEL_API bool is_gzip(ByteSpan bytes);  // by the two magic bytes

// Decompresses all members of a gzip file. `name` stands in errors, which also give the offset. Output past
// `max_bytes` is an error: a small hostile file must not fill the memory.
RUNNEL_API std::vector<std::byte> gunzip(ByteSpan bytes, const std::string& name, size_t max_bytes = size_t{1} << 32);

RUNNEL_API std::vector<std::byte> gzip(ByteSpan bytes);

}  // namespace runnel::io
