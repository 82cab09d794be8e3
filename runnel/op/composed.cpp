#include "runnel/op/composed.h"

#include <string_view>
#include <utility>
#include <vector>

namespace runnel {

bool is_library_line(const SourceSite& where) {
  static constexpr std::string_view here = __FILE__;
  static constexpr std::string_view library = here.substr(0, here.rfind("op/composed.cpp"));
  const std::string_view file = where.file;
  const auto in = [&](std::string_view folder) { return file.find(folder) != std::string_view::npos; };
  // Our headers are in two places, here and installed. std::function and std::apply call what the user handed over.
  return !where.known() || file.starts_with(library) || in("/include/runnel/") || in("/include/c++/");
}

const SourceSite& user_line(const SourceSite& where) {
  static constexpr SourceSite nowhere;
  if (!is_library_line(where)) return where;
  const SourceSite* call = detail::current_context.call_site;
  return call && !is_library_line(*call) ? *call : nowhere;
}

void rethrow_from_call(const Error& e, const SourceSite& where) {
  if (is_library_line(where)) throw;
  std::vector<ErrorFrame> frames = e.frames();
  for (const ErrorFrame& frame : frames) {
    if (!is_library_line(frame.where)) throw;
  }
  for (ErrorFrame& frame : frames) {
    if (frame.kind == ErrorFrame::Kind::op) frame.where = where;
  }
  throw Error(e.code(), e.what() + where.at(), std::move(frames));
}

}  // namespace runnel
