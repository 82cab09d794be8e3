#pragma once

// Internal: recordings as XSpace, the message of TensorFlow's .xplane.pb files, which TensorBoard's profile plugin
// reads. docs/formats/profile.md
#include <string>
#include <string_view>

#include "runnel/base/profile.h"

namespace runnel::io {

RUNNEL_API std::string xspace_bytes(const profile::Recording& recording);

// Ours come back as they were. TensorFlow's come as far as they say the same: ops, stages, waiting for input, steps,
// memory. `path` stands in errors.
RUNNEL_API profile::Recording parse_xspace(std::string_view bytes, const std::string& path);

// The names of what the messages hold beyond TensorFlow's own names.
namespace xplane {
inline constexpr const char* kHostPlane = "/host:CPU";
inline constexpr const char* kMemoryLine = "memory";
inline constexpr const char* kAllocation = "MemoryAllocation";
inline constexpr const char* kRelease = "MemoryDeallocation";
}  // namespace xplane

}  // namespace runnel::io
