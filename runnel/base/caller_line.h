#pragma once

// Internal: the line of the program that an error names.
#include "runnel/base/error.h"
#include "runnel/base/source_site.h"

namespace runnel {

// Is it a line of the library or of its own program, or none at all? Errors name lines of the user.
RUNNEL_API bool is_library_line(const SourceSite& where);

// The error of a call at `where`: it names that line, in its text and in a frame, unless it names one of the user
// already.
RUNNEL_API Error at_line(const Error& e, const SourceSite& where);

// f() as a call of the user at `where`. (Above ops, `composed` does more: what f traces knows the line, too.)
template <class F>
decltype(auto) at_caller(const SourceSite& where, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw at_line(e, where);
  }
}

}  // namespace runnel
