#pragma once

// Internal: public functions that are made of several ops, or check their arguments before they call one.
#include "runnel/base/caller_line.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// The line that an error or a node names for a call at `where`: the user's own, or that of the user's call around it;
// none where that is not known.
RUNNEL_API const SourceSite& user_line(const SourceSite& where);

// To be called while the error is caught: throws it on as the caller at `where` sees it, with that line unless it names
// one already.
[[noreturn]] void rethrow_from_call(const Error& e, const SourceSite& where);

// f() as one call of the user at `where`: errors of the ops inside and of f itself name that line, and so do the nodes
// that it makes while traced. Of functions inside one another the outermost counts; code of the user that f calls names
// lines of its own.
//   Tensor trace(const Operand& x) {
//     return composed(x.where(), [&] { return reduce_sum(diag_part(x), -1); });
//   }
template <class F>
decltype(auto) composed(const SourceSite& where, const F& f) {
  if (detail::current_context.call_site && is_library_line(where)) return f();
  const ContextScope<&ThreadContext::call_site> scope(&where);
  try {
    return f();
  } catch (const Error& e) {
    rethrow_from_call(e, where);
  }
}

// The same for f that makes traces which outlive the call: what they have of the library names no line, and errors name
// the line of the call that met them.
template <class F>
decltype(auto) called_from(const SourceSite& where, const F& f) {
  static constexpr SourceSite nowhere;
  const SourceSite& line = user_line(where);
  const ContextScope<&ThreadContext::call_site> scope(&nowhere);
  try {
    return f();
  } catch (const Error& e) {
    rethrow_from_call(e, line);
  }
}

}  // namespace runnel
