#pragma once

// What the commands of `runnel ckpt` have in common: finding checkpoints and copying their values.
#include <span>
#include <string>
#include <vector>

#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_writer.h"
#include "tools/progress.h"

namespace runnel::tools {

// The prefix that a path of the command line means: a prefix, an .index file or a shard of it, a folder (its latest
// checkpoint, or the only one there; of a SavedModel, the one in it).
std::string checkpoint_prefix(const std::string& given);
io::CheckpointReader open_checkpoint(const std::string& path);

std::string shape_text(const std::vector<int64_t>& shape);  // "[784,100]"
// What stands in the shards for it: itself, or the parts of a partitioned variable.
std::vector<io::CheckpointEntry> stored_entries(const io::CheckpointReader& reader, const io::CheckpointEntry& entry);
// Those whose keys are `key` or come after it.
std::span<const io::CheckpointEntry> entries_from(const io::CheckpointReader& reader, const std::string& key);
uint64_t stored_bytes(const io::CheckpointReader& reader);

// Writes a value of one checkpoint into another, under a key.
void copy_value(const io::CheckpointReader& reader, const io::CheckpointEntry& entry, const std::string& key,
                io::CheckpointWriter& writer);
// For commands that write: an Error where there is a checkpoint already.
void require_free(const std::string& prefix);

// A bar over the bytes of checkpoints.
class BytesProgress {
 public:
  BytesProgress(std::string what, uint64_t total) : what_(std::move(what)), total_(total) {}
  void add(uint64_t bytes) { line_.update(what_, done_ += bytes, total_); }

 private:
  std::string what_;
  uint64_t total_;
  uint64_t done_ = 0;
  SlowProgress line_;
};

}  // namespace runnel::tools
