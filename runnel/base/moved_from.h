#pragma once

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel {

// The Error of an object whose contents were moved into another one, used at `where`. `kind` is its class as users
// write it.
[[noreturn]] RUNNEL_API void throw_moved_from(const char* kind, const SourceSite& where = SourceSite());

}  // namespace runnel
