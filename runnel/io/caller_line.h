#pragma once

// Internal to the file formats: errors name the line of the call. (Formats are below ops, whose `composed` does more.)
#include <algorithm>
#include <utility>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

// The error of a call at `where`: it names that line unless it names one already.
inline Error at_line(const Error& e, const SourceSite& where) {
  std::vector<ErrorFrame> frames = e.frames();
  const auto named = [](const ErrorFrame& frame) { return frame.where.known(); };
  if (!where.known() || std::ranges::any_of(frames, named)) return e;
  for (ErrorFrame& frame : frames) frame.where = where;
  return Error(e.code(), e.what() + where.at(), std::move(frames));
}

// f() as a call at `where`, which calls inside the library know nothing of: they hand over SourceSite().
template <class F>
decltype(auto) called_at(const SourceSite& where, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw at_line(e, where);
  }
}

}  // namespace runnel::io
