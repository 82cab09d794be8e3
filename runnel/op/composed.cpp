#include "runnel/op/composed.h"

namespace runnel {

const SourceSite& user_line(const SourceSite& where) {
  static constexpr SourceSite nowhere;
  if (!is_library_line(where)) return where;
  const SourceSite* call = detail::current_context.call_site;
  return call && !is_library_line(*call) ? *call : nowhere;
}

void rethrow_from_call(const Error& e, const SourceSite& where) { throw at_line(e, where); }

}  // namespace runnel
