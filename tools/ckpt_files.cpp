#include "tools/ckpt_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_state.h"
#include "runnel/track/checkpoint_path.h"

namespace runnel::tools {
namespace {

constexpr const char* kIndexEnd = ".index";

bool is_folder(const std::string& path) {
  Env& env = Env::posix();
  return env.exists(path) && env.stat(path).is_dir;
}

std::string prefix_in_folder(const std::string& folder) {
  if (const std::optional<std::string> latest = io::latest_checkpoint(folder)) return *latest;
  std::vector<std::string> found;
  for (const std::string& name : Env::posix().list(folder)) {
    if (name.ends_with(kIndexEnd)) found.push_back(name.substr(0, name.size() - 6));
  }
  if (found.size() == 1) return join_path(folder, found[0]);
  if (found.empty()) throw make_error(Code::not_found, "[ckpt] there is no checkpoint in {}", folder);
  throw make_error(Code::failed_precondition,
                   "[ckpt] {} has no state file that names its latest checkpoint; name one of them: {}", folder,
                   fmt::join(found, ", "));
}

}  // namespace

std::string checkpoint_prefix(const std::string& given) {
  const std::string path = train::without_saved_model(given, Env::posix());
  if (io::checkpoint_exists(path)) return path;
  if (path.ends_with(kIndexEnd)) return path.substr(0, path.size() - 6);
  if (is_folder(path)) return prefix_in_folder(path);
  if (const size_t at = path.rfind(".data-"); at != std::string::npos && Env::posix().exists(path)) {
    return path.substr(0, at);
  }
  return path;
}

io::CheckpointReader open_checkpoint(const std::string& path) { return io::CheckpointReader(checkpoint_prefix(path)); }

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::vector<io::CheckpointEntry> stored_entries(const io::CheckpointReader& reader, const io::CheckpointEntry& entry) {
  if (entry.slices.empty()) return {entry};
  return reader.parts(entry);
}

std::span<const io::CheckpointEntry> entries_from(const io::CheckpointReader& reader, const std::string& key) {
  const std::vector<io::CheckpointEntry>& all = reader.entries();
  const auto at = std::lower_bound(all.begin(), all.end(), key,
                                   [](const io::CheckpointEntry& e, const std::string& k) { return e.key < k; });
  return std::span(all).subspan(static_cast<size_t>(at - all.begin()));
}

uint64_t stored_bytes(const io::CheckpointReader& reader) {
  uint64_t bytes = 0;
  for (const io::CheckpointEntry& entry : reader.entries()) {
    bytes += entry.slices.empty() ? entry.size : byte_size(entry);
  }
  return bytes;
}

void copy_value(const io::CheckpointReader& reader, const io::CheckpointEntry& entry, const std::string& key,
                io::CheckpointWriter& writer) {
  if (entry.slices.empty()) {
    return writer.add_raw(key, entry.dtype, entry.shape, entry.crc32c, reader.read_raw(entry));
  }
  reader.check(entry);
  const std::vector<io::CheckpointEntry> parts = reader.parts(entry);
  for (size_t i = 0; i < parts.size(); ++i) {
    writer.add_part(key, entry.dtype, entry.shape, entry.slices[i], reader.read_raw(parts[i]));
  }
}

void require_free(const std::string& prefix) {
  if (!io::checkpoint_exists(prefix)) return;
  throw make_error(Code::already_exists, "[ckpt] {} is there already; remove it first, or name another prefix",
                   io::checkpoint_index_path(prefix));
}

}  // namespace runnel::tools
