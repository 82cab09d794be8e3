#include "runnel/board/logdir.h"

#include <algorithm>

#include "runnel/base/format.h"

namespace runnel::board {
namespace {

std::string last_part(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

LogDir parse_one(const std::string& text) {
  // A colon behind a slash belongs to the path.
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.find('/') < colon) return {.name = "", .path = text};
  return {.name = text.substr(0, colon), .path = text.substr(colon + 1)};
}

void refuse_file(const std::string& path, Env& env) {
  if (!env.exists(path) || env.stat(path).is_dir) return;
  throw invalid_argument("[board] the log folder '{}' is a file; give the folder that it is in", path);
}

}  // namespace

std::vector<LogDir> parse_logdirs(const std::string& text, Env& env) {
  if (env.exists(text)) {
    refuse_file(text, env);
    return {{.name = "", .path = text}};
  }
  std::vector<LogDir> dirs;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    dirs.push_back(parse_one(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  for (LogDir& dir : dirs) {
    if (dir.path.empty()) {
      throw invalid_argument("[board] the log folder '{}' has an empty path; give DIR or NAME:DIR,NAME:DIR", text);
    }
    refuse_file(dir.path, env);
    if (dirs.size() > 1 && dir.name.empty()) dir.name = last_part(dir.path);
  }
  for (size_t i = 0; i < dirs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (dirs[i].name != dirs[j].name) continue;
      throw invalid_argument("[board] two log folders are named '{}'; give each a name of its own: NAME:DIR,NAME:DIR",
                             dirs[i].name);
    }
  }
  return dirs;
}

std::string run_name(const LogDir& dir, const std::string& folder) {
  if (dir.name.empty()) return folder;
  return folder == "." ? dir.name : dir.name + "/" + folder;
}

}  // namespace runnel::board
