#pragma once

#include <cstdint>
#include <string>

#include "runnel/base/error.h"

namespace runnel::io {

// The place in a file that an error is about; its message names it too.
inline ErrorFrame file_frame(std::string path, uint64_t offset) {
  return {.kind = ErrorFrame::Kind::file, .name = std::move(path), .offset = static_cast<int64_t>(offset)};
}

}  // namespace runnel::io
