#pragma once

// Internal: how files of a checkpoint get their names, so that a crash or another process never leaves half of one.
#include <memory>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/function_ref.h"

namespace runnel::io {

// A file that is written beside another path and then takes its place. While it lives, its writer holds a lock on it:
// so everybody can tell it from what a killed writer left, whose lock the system has dropped.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& beside, Env& env);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();  // removes it, unless it has taken its place

  const std::string& path() const { return path_; }
  // All of its bytes, synced.
  void write(ByteSpan bytes);
  void rename_to(const std::string& path);

 private:
  void let_go();
  Env& env_;
  std::string path_;
  int lock_ = -1;  // a descriptor; none where files cannot be locked
  bool renamed_ = false;
};

// A folder and those above it, on the disk when this returns.
void create_synced_dirs(const std::string& dir, Env& env);
// Removes what writers under this host name left in the folder that have ended without a word (killed, out of power):
// temporary files that nobody holds a lock on. Where files cannot be locked, all stay.
void remove_leftovers(const std::string& dir, Env& env);
void remove_quietly(const std::string& path, Env& env) noexcept;

struct ShardName {
  int shard = 0, shards = 1;
};

// Puts a checkpoint in its place: `data` holds its one shard, synced, and becomes that; make_index gives the bytes
// of the index, for the name that the shard gets. On failure neither is there and an older checkpoint of the prefix is
// as it was; but where only the last sync of the folder fails, the Error says that the new one is there
// (what the disk would have after a loss of power is then not known, and taking it back would be as uncertain). The
// folder is locked until the result is destroyed; null where it cannot be locked.
[[nodiscard]] std::unique_ptr<FileLock> commit_checkpoint(const std::string& prefix, TemporaryFile& data, Env& env,
                                                          FunctionRef<std::string(const ShardName&)> make_index);

}  // namespace runnel::io
