#include "runnel/io/checkpoint_commit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string_view>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/temporary_name.h"
#include "runnel/io/checkpoint_names.h"

namespace runnel::io {
namespace {

// The mark of temporary files. File systems that machines share may know locks of one machine only: so nobody touches
// the files of another host.
std::string temporary_mark() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::string name = host;
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return ".tmp-ckpt-" + name + "-";
}

// "1234-0": what temporary_name puts behind the mark. "b-1234-0" is that of a host whose name goes on after ours.
bool is_number_of_writer(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == text.size()) return false;
  return text.find_first_not_of("0123456789") == dash &&
         text.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
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

TemporaryFile::TemporaryFile(const std::string& beside, Env& env) : env_(env) {
  constexpr int kTries = 100;
  const std::string mark = temporary_mark();
  for (int i = 0; i < kTries; ++i) {
    path_ = temporary_name(beside, mark);
    lock_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (lock_ < 0 && errno == EEXIST) continue;  // of a process of this number in another container
    if (lock_ < 0) return;                       // the reason shows when the file is written
    const bool locked = ::flock(lock_, LOCK_EX | LOCK_NB) == 0;
    const bool can_be_locked = locked || errno == EWOULDBLOCK;
    // Another process may look for leftovers between the two calls: then it has the lock, or the file is gone.
    struct ::stat status {};
    if (locked && ::fstat(lock_, &status) == 0 && status.st_nlink > 0) return;
    let_go();
    if (!can_be_locked) return;
  }
}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) remove_quietly(path_, env_);
  let_go();
}

void TemporaryFile::let_go() {
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

void TemporaryFile::write(ByteSpan bytes) {
  const std::unique_ptr<WritableFile> file = env_.create(path_);
  file->append(bytes);
  file->sync();
  file->close();
}

void TemporaryFile::rename_to(const std::string& path) {
  env_.rename(path_, path);
  renamed_ = true;
  let_go();
}

void remove_quietly(const std::string& path, Env& env) noexcept {
  try {
    if (env.exists(path)) env.remove(path);
  } catch (const std::exception&) {
    // The first failure is the one to report.
  }
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
    if (at == std::string::npos || !is_number_of_writer(std::string_view(name).substr(at + mark.size()))) continue;
    const std::string path = join_path(dir, name);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) remove_quietly(path, env);
    ::close(file);
  }
}

std::unique_ptr<FileLock> commit_checkpoint(const std::string& prefix, TemporaryFile& data, Env& env,
                                            FunctionRef<std::string(const ShardName&)> make_index) {
  const std::string dir = parent_dir(prefix), index_path = checkpoint_index_path(prefix);
  std::unique_ptr<FileLock> lock = lock_folder(dir, env);
  const bool replaces = checkpoint_exists(prefix, env);
  const ShardName name = replaces ? free_shard_name(prefix, env) : ShardName{};
  const std::string data_path = checkpoint_shard_path(prefix, name.shard, name.shards);
  TemporaryFile index(index_path, env);
  index.write(as_bytes(make_index(name)));
  data.rename_to(data_path);
  try {
    env.sync_dir(dir);  // the index must not reach the disk before the shard it names
    index.rename_to(index_path);
  } catch (...) {
    remove_quietly(data_path, env);
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
      if (file_name(shard) != file_name(data_path)) remove_quietly(shard, env);
    }
  }
  return lock;
}

}  // namespace runnel::io
