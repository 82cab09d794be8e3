#include "runnel/io/checkpoint_commit.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <exception>
#include <string_view>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/checkpoint_names.h"

namespace runnel::io {
namespace {

// When a process began, in ticks since the machine did; 0 where that is not known, or there is no such process. Numbers
// of processes are used again, this is not.
uint64_t begin_of_process(int pid) {
  try {
    const std::vector<std::byte> bytes = Env::posix().read_file(fmt::format("/proc/{}/stat", pid));
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    text.remove_prefix(std::min(text.rfind(')') + 1, text.size()));  // the name may have spaces
    constexpr int kFieldsBefore = 20;                                // the begin is number 22, the name 2
    for (int i = 0; i < kFieldsBefore; ++i) text.remove_prefix(std::min(text.find(' ') + 1, text.size()));
    uint64_t begin = 0;
    std::from_chars(text.data(), text.data() + text.size(), begin);
    return begin;
  } catch (const Error&) {
    return 0;
  }
}

// Does the process that made a temporary file live? `writer` is what stands behind the mark in its name.
bool writer_lives(std::string_view writer) {
  int pid = 0;
  uint64_t begin = 0;
  const char* end = writer.data() + writer.size();
  const auto [dot, bad_pid] = std::from_chars(writer.data(), end, pid);
  if (bad_pid != std::errc() || dot == end || *dot != '.' || pid <= 0) return true;  // no file of ours
  const auto [dash, bad_begin] = std::from_chars(dot + 1, end, begin);
  if (bad_begin != std::errc() || dash == end || *dash != '-') return true;
  if (::kill(pid, 0) != 0 && errno == ESRCH) return false;
  const uint64_t now = begin_of_process(pid);
  return begin == 0 || now == 0 || now == begin;
}

// The mark of temporary files: the machine and the process, so that it can be told whether their writer still lives.
std::string temporary_mark() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::string name = host;
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return ".tmp-ckpt-" + name + "-";
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// One process after the other puts checkpoints into a folder. File systems that know no locks go without: what is
// lost then is the order of two processes that save under one prefix at the same moment.
std::unique_ptr<FileLock> lock_folder(const std::string& dir, Env& env) {
  try {
    return env.lock(dir);
  } catch (const Error& error) {
    log_info("[checkpoint] {} cannot be locked: {}", dir, error.what());
    return nullptr;
  }
}

// Readers of the old checkpoint find its shard by the number of shards in the index. So a new shard never overwrites
// one that an index may name: it takes another name, and the rename of the index alone decides which is read.
ShardName free_shard_name(const std::string& prefix, Env& env) {
  for (int n = 1; n < 100000; ++n) {
    const ShardName name{.shard = n - 1, .shards = n};
    if (!env.exists(checkpoint_shard_path(prefix, name.shard, name.shards))) return name;
  }
  throw make_error(Code::resource_exhausted, "[checkpoint] {}: too many shards lie beside it; remove some", prefix);
}

}  // namespace

std::string temporary_path(const std::string& path) {
  static std::atomic<uint64_t> serial{0};
  const int pid = ::getpid();
  return fmt::format("{}{}{}.{}-{}", path, temporary_mark(), pid, begin_of_process(pid), serial++);
}

void remove_quietly(const std::string& path, Env& env) noexcept {
  try {
    if (env.exists(path)) env.remove(path);
  } catch (const std::exception&) {
    // The first failure is the one to report.
  }
}

std::string write_temporary(const std::string& path, ByteSpan bytes, Env& env) {
  std::string temporary = temporary_path(path);
  try {
    const std::unique_ptr<WritableFile> file = env.create(temporary);
    file->append(bytes);
    file->sync();
    file->close();
  } catch (...) {
    remove_quietly(temporary, env);
    throw;
  }
  return temporary;
}

void create_synced_dirs(const std::string& dir, Env& env) {
  if (env.exists(dir)) return env.create_dirs(dir);  // an Error where it is a file
  const std::string parent = parent_dir(dir);
  if (parent != dir) create_synced_dirs(parent, env);
  env.create_dirs(dir);
  env.sync_dir(parent);
}

void remove_leftovers(const std::string& dir, Env& env) {
  const std::string mark = temporary_mark();
  for (const std::string& name : env.list(dir)) {
    const size_t at = name.rfind(mark);
    if (at == std::string::npos) continue;
    if (!writer_lives(std::string_view(name).substr(at + mark.size()))) remove_quietly(join_path(dir, name), env);
  }
}

std::unique_ptr<FileLock> commit_checkpoint(const std::string& prefix, const std::string& data_path, Env& env,
                                            FunctionRef<std::string(const ShardName&)> make_index) {
  const std::string dir = parent_dir(prefix), index = checkpoint_index_path(prefix);
  std::unique_ptr<FileLock> lock = lock_folder(dir, env);
  const bool replaces = checkpoint_exists(prefix, env);
  const ShardName name = replaces ? free_shard_name(prefix, env) : ShardName{};
  const std::string data = checkpoint_shard_path(prefix, name.shard, name.shards);
  std::string index_path;
  bool data_in_place = false;
  try {
    index_path = write_temporary(index, as_bytes(make_index(name)), env);
    env.rename(data_path, data);
    data_in_place = true;
    env.sync_dir(dir);  // the index must not reach the disk before the shard it names
    env.rename(index_path, index);
  } catch (...) {
    if (!index_path.empty()) remove_quietly(index_path, env);
    remove_quietly(data_in_place ? data : data_path, env);
    throw;
  }
  try {
    env.sync_dir(dir);
  } catch (const Error& error) {
    throw error.reworded(fmt::format(
        "{}; the new checkpoint is in its place all the same, but may be lost if the machine loses power now",
        error.what()));
  }
  if (replaces) {
    for (const std::string& shard : checkpoint_shards_on_disk(prefix, env)) {
      if (file_name(shard) != file_name(data)) remove_quietly(shard, env);
    }
  }
  return lock;
}

}  // namespace runnel::io
