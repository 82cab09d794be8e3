#include "runnel/base/caller_line.h"

#include <string_view>
#include <utility>
#include <vector>

namespace runnel {

bool is_library_line(const SourceSite& where) {
  static constexpr std::string_view here = __FILE__;
  static constexpr std::string_view library = here.substr(0, here.rfind("base/caller_line.cpp"));
  static constexpr std::string_view project = library.substr(0, library.rfind("runnel/"));
  const std::string_view file = where.file;
  const auto in = [&](std::string_view folder) { return file.find(folder) != std::string_view::npos; };
  // Our headers are in two places, here and installed. std::function and std::apply call what the user handed over.
  return !where.known() || file.starts_with(library) || in("/include/runnel/") || in("/include/c++/") ||
         (file.starts_with(project) && file.substr(project.size()).starts_with("tools/"));
}

Error at_line(const Error& e, const SourceSite& where) {
  if (is_library_line(where)) return e;
  std::vector<ErrorFrame> frames = e.frames();
  for (const ErrorFrame& frame : frames) {
    if (!is_library_line(frame.where)) return e;
  }
  bool placed = false;
  for (ErrorFrame& frame : frames) {
    if (frame.kind != ErrorFrame::Kind::op && frame.kind != ErrorFrame::Kind::file) continue;
    frame.where = where;
    placed = true;
  }
  if (!placed) frames.push_back({.kind = ErrorFrame::Kind::call, .name = "", .where = where});
  return Error(e.code(), e.what() + where.at(), std::move(frames));
}

}  // namespace runnel
