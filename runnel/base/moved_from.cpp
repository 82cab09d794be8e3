#include "runnel/base/moved_from.h"

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel {

void throw_moved_from(const char* kind, const SourceSite& where) {
  const std::string text = fmt::format(
      "[{0}] this {0} was moved from: what it was is now the object that it was moved into. Use that one, "
      "or assign another {0} to this{1}",
      kind, is_library_line(where) ? "" : where.at());
  throw Error(Code::failed_precondition, text, {{.kind = ErrorFrame::Kind::op, .name = kind, .where = where}});
}

}  // namespace runnel
