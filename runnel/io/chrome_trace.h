#pragma once

// Internal: recordings as the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing show. docs/formats/profile.md
#include <string>
#include <string_view>

#include "runnel/base/profile.h"

namespace runnel::io {

RUNNEL_API std::string chrome_trace_json(const profile::Recording& recording);

// Ours come back as they were, TensorFlow's as far as they say the same. `path` stands in errors.
RUNNEL_API profile::Recording parse_chrome_trace(std::string_view json, const std::string& path);

}  // namespace runnel::io
