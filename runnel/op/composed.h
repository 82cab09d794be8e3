#pragma once

// Internal: public functions that are made of several ops, or check their arguments before they call one.
#include "runnel/base/error.h"
#include "runnel/base/source_site.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// To be called while the error is caught: throws it on as the caller at `where` sees it, with that line unless it names
// one already.
[[noreturn]] void rethrow_from_call(const Error& e, const SourceSite& where);

// f() as one call of the user at `where`: errors of the ops inside and of f itself name that line, and so do the nodes
// that it makes while traced. Of functions inside one another the outermost counts. f calls no code of the user.
//   Tensor trace(const Operand& x) {
//     return composed(x.where(), [&] { return reduce_sum(diag_part(x), -1); });
//   }
template <class F>
decltype(auto) composed(const SourceSite& where, const F& f) {
  if (detail::current_context.call_site) return f();
  const ContextScope<&ThreadContext::call_site> scope(&where);
  try {
    return f();
  } catch (const Error& e) {
    rethrow_from_call(e, where);
  }
}

}  // namespace runnel
