#include "runnel/io/glob.h"

#include <algorithm>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

bool is_wild(std::string_view part) { return part.find_first_of("*?[\\") != std::string_view::npos; }

// One set "[a-z]" at the beginning of the pattern; on success the pattern stands behind it.
bool in_set(char c, std::string_view& pattern) {
  size_t i = 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    char low = pattern[i++];
    if (low == '\\' && i < pattern.size()) low = pattern[i++];
    char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      high = pattern[i + 1];
      i += 2;
    }
    found = found || (low <= c && c <= high);
  }
  if (i >= pattern.size()) throw invalid_argument("the pattern has a '[' without ']'");
  pattern.remove_prefix(i + 1);
  return found != negated;
}

}  // namespace

bool matches_pattern(std::string_view name, std::string_view pattern) {
  // On a mismatch the last star takes one character more; earlier stars never need to.
  std::string_view star_name, star_pattern;
  bool star = false;
  while (true) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      star = true;
      star_name = name;
      star_pattern = pattern;
      continue;
    }
    if (name.empty() && pattern.empty()) return true;
    bool fits = false;
    if (!name.empty() && !pattern.empty()) {
      if (pattern[0] == '?') {
        fits = true;
        pattern.remove_prefix(1);
      } else if (pattern[0] == '[') {
        fits = in_set(name[0], pattern);
      } else {
        if (pattern[0] == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
        fits = pattern[0] == name[0];
        pattern.remove_prefix(1);
      }
      if (fits) name.remove_prefix(1);
    }
    if (fits) continue;
    if (!star || star_name.empty()) return false;
    star_name.remove_prefix(1);
    name = star_name;
    pattern = star_pattern;
  }
}

namespace {

// A pattern goes past what cannot be looked up (a folder without permission, a loop of links), as a shell does.
bool can_be_found(const std::string& path, Env& env) {
  try {
    return env.exists(path);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> matching_paths(const std::string& pattern, Env& env) {
  std::vector<std::string> found = {pattern.starts_with('/') ? "/" : ""};
  size_t at = pattern.find_first_not_of('/');
  while (at < pattern.size() && !found.empty()) {
    const size_t end = std::min(pattern.find('/', at), pattern.size());
    const std::string part = pattern.substr(at, end - at);
    at = std::min(pattern.find_first_not_of('/', end), pattern.size());
    std::vector<std::string> next;
    for (const std::string& dir : found) {
      if (!is_wild(part)) {
        std::string path = join_path(dir, part);
        if (can_be_found(path, env)) next.push_back(std::move(path));
        continue;
      }
      const std::string folder = dir.empty() ? "." : dir;
      if (!can_be_found(folder, env) || !env.stat(folder).is_dir) continue;
      for (const std::string& name : env.list(folder)) {
        if (name.starts_with('.') && !part.starts_with('.')) continue;
        if (matches_pattern(name, part)) next.push_back(join_path(dir, name));
      }
    }
    found = std::move(next);
  }
  if (pattern.find_first_not_of('/') == std::string::npos && pattern.empty()) return {};
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace runnel::io
