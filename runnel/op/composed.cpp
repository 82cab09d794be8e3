#include "runnel/op/composed.h"

#include <utility>
#include <vector>

namespace runnel {

void rethrow_from_call(const Error& e, const SourceSite& where) {
  if (!where.known()) throw;
  std::vector<ErrorFrame> frames = e.frames();
  for (ErrorFrame& frame : frames) {
    if (frame.kind != ErrorFrame::Kind::op) continue;
    if (frame.where.known()) throw;
    frame.where = where;
  }
  throw Error(e.code(), e.what() + where.at(), std::move(frames));
}

}  // namespace runnel
