#include "runnel/io/checkpoint_names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

struct ElementType {
  std::string_view name;
  size_t size;
};
// By number.
constexpr std::array<ElementType, 31> kElementTypes = {{
    {"invalid", 0},     {"float32", 4},       {"float64", 8},   {"int32", 4},   {"uint8", 1},   {"int16", 2},
    {"int8", 1},        {"string", 0},        {"complex64", 8}, {"int64", 8},   {"bool", 1},    {"qint8", 1},
    {"quint8", 1},      {"qint32", 4},        {"bfloat16", 2},  {"qint16", 2},  {"quint16", 2}, {"uint16", 2},
    {"complex128", 16}, {"float16", 2},       {"resource", 0},  {"variant", 0}, {"uint32", 4},  {"uint64", 8},
    {"float8_e5m2", 1}, {"float8_e4m3fn", 1}, {"", 0},          {"", 0},        {"", 0},        {"int4", 1},
    {"uint4", 1},
}};

// The name is that of a shard: "data-00000-of-00001" and no more.
bool is_shard_suffix(std::string_view suffix) {
  constexpr std::string_view pattern = "data-NNNNN-of-NNNNN";
  if (suffix.size() != pattern.size()) return false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool digit = suffix[i] >= '0' && suffix[i] <= '9';
    if (pattern[i] == 'N' ? !digit : suffix[i] != pattern[i]) return false;
  }
  return true;
}

// One checkpoint has many names (relative, absolute, by a link to its folder), and one place.
std::string place_of(const std::string& prefix) {
  const std::filesystem::path absolute = std::filesystem::absolute(prefix);
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::weakly_canonical(absolute.parent_path(), unknown);
  return ((unknown ? absolute.parent_path().lexically_normal() : folder) / absolute.filename()).string();
}

}  // namespace

bool is_same_checkpoint(const std::string& a, const std::string& b) { return a == b || place_of(a) == place_of(b); }

std::string checkpoint_index_path(const std::string& prefix) { return prefix + ".index"; }

std::string checkpoint_shard_path(const std::string& prefix, int shard, int shards) {
  return fmt::format("{}.data-{:05}-of-{:05}", prefix, shard, shards);
}

bool checkpoint_exists(const std::string& prefix, Env& env) { return env.exists(checkpoint_index_path(prefix)); }

std::vector<std::string> checkpoint_shards_on_disk(const std::string& prefix, Env& env) {
  const std::string dir = parent_dir(prefix);
  const std::string begin = prefix.substr(prefix.find_last_of('/') + 1) + ".";
  std::vector<std::string> found;
  if (!env.exists(dir)) return found;
  for (const std::string& name : env.list(dir)) {
    if (name.starts_with(begin) && is_shard_suffix(std::string_view(name).substr(begin.size()))) {
      found.push_back(join_path(prefix.find('/') == std::string::npos ? "" : dir, name));
    }
  }
  return found;
}

void remove_checkpoint(const std::string& prefix, Env& env) {
  const auto remove_if_there = [&](const std::string& path) {
    try {
      env.remove(path);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
  };
  remove_if_there(checkpoint_index_path(prefix));
  for (const std::string& shard : checkpoint_shards_on_disk(prefix, env)) remove_if_there(shard);
}

size_t checkpoint_dtype_size(int dtype) {
  return dtype >= 0 && static_cast<size_t>(dtype) < kElementTypes.size()
             ? kElementTypes[static_cast<size_t>(dtype)].size
             : 0;
}

std::string checkpoint_dtype_name(int dtype) {
  const bool known = dtype >= 0 && static_cast<size_t>(dtype) < kElementTypes.size() &&
                     !kElementTypes[static_cast<size_t>(dtype)].name.empty();
  return known ? std::string(kElementTypes[static_cast<size_t>(dtype)].name) : fmt::format("dtype {}", dtype);
}

}  // namespace runnel::io
