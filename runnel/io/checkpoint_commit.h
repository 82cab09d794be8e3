#pragma once

// Internal: how files of a checkpoint get their names, so that a crash or another process never leaves half of one.
#include <memory>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/function_ref.h"

namespace runnel::io {

// A name for a file that is being written beside `path`: no other writer has it, and remove_leftovers knows it.
std::string temporary_path(const std::string& path);
// Writes the bytes, synced, to such a name and returns it; on failure nothing is left.
std::string write_temporary(const std::string& path, ByteSpan bytes, Env& env);
// A folder and those above it, on the disk when this returns.
void create_synced_dirs(const std::string& dir, Env& env);
// Removes what writers of checkpoints left in the folder that have ended without a word (killed, out of power). A
// writer is known by its host name, its process number and when that process began. So hosts and containers that share
// a folder need names of their own: with one name for two, the files of a writer that lives may be removed, and its
// save fails. Files of a name that is used no more stay.
void remove_leftovers(const std::string& dir, Env& env);
void remove_quietly(const std::string& path, Env& env) noexcept;

struct ShardName {
  int shard = 0, shards = 1;
};

// Puts a checkpoint in its place: `data_path` holds its one shard, synced, and becomes that; make_index gives the bytes
// of the index, for the name that the shard gets. On failure both temporary files are gone and an older checkpoint of
// the prefix is as it was; but where only the last sync of the folder fails, the Error says that the new one is there
// (what the disk would have after a loss of power is then not known, and taking it back would be as uncertain). The
// folder is locked until the result is destroyed; null where it cannot be locked.
[[nodiscard]] std::unique_ptr<FileLock> commit_checkpoint(const std::string& prefix, const std::string& data_path,
                                                          Env& env,
                                                          FunctionRef<std::string(const ShardName&)> make_index);

}  // namespace runnel::io
