#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/io/checkpoint_slice.h"

namespace runnel::io {

// One tensor of a checkpoint, as its index says.
struct CheckpointEntry {
  std::string key;
  int dtype = 0;               // a number of runnel::DType, or another of TensorFlow's (checkpoint_dtype_name)
  std::vector<int64_t> shape;  // of the whole tensor
  int shard = 0;
  uint64_t offset = 0;  // of its bytes in the shard
  uint64_t size = 0;
  uint32_t crc32c = 0;  // masked, as it stands in the file
  // Not empty: a partitioned variable. Its bytes are those of the parts, and shard, offset, size and crc32c mean
  // nothing.
  std::vector<CheckpointSlice> slices = {};
};

// A checkpoint written by TensorFlow or by CheckpointWriter, by its prefix ("./save/model.ckpt-100"): the index is read
// and checked at once, values when asked for. Several threads may read. What is damaged is an Error that names the
// file, the key and the offset; other tensors can still be read. docs/formats/checkpoint.md describes the files.
class RUNNEL_API CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& prefix, Env& env = Env::posix(),
                            SourceSite where = SourceSite::current());
  ~CheckpointReader();
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;

  const std::string& prefix() const;
  int num_shards() const;
  std::string shard_path(int shard) const;
  // By key, in their order. A partitioned variable is one entry.
  const std::vector<CheckpointEntry>& entries() const;
  const CheckpointEntry* find(std::string_view key) const;  // null if there is none
  const CheckpointEntry& entry(
      std::string_view key, SourceSite where = SourceSite::current()) const;  // an Error (not_found) if there is none

  // Opens the files of the values, so that they can be read after others have taken their names or they were removed.
  // What cannot be opened is left: reading says why.
  void open_shards() const;
  // Throws what reading would throw, but looks at sizes only: call it before memory is taken for the value.
  void check(const CheckpointEntry& entry, SourceSite where = SourceSite::current()) const;
  // The elements of a tensor of numbers, row by row as in memory: `out` has exactly its size (byte_size). The checksum
  // is compared; where it is wrong, `out` holds what was read.
  void read(const CheckpointEntry& entry, std::span<std::byte> out, SourceSite where = SourceSite::current()) const;
  // A part of it, dense.
  void read(const CheckpointEntry& entry, const CheckpointSlice& slice, std::span<std::byte> out,
            SourceSite where = SourceSite::current()) const;
  // The elements of a tensor of strings; of variants, each a serialized VariantTensorDataProto.
  std::vector<std::string> read_strings(const CheckpointEntry& entry, SourceSite where = SourceSite::current()) const;
  // What stands in the shard, checked: for copies of a checkpoint, and for tensors of unknown dtypes. An entry with
  // slices has none.
  std::vector<std::byte> read_raw(const CheckpointEntry& entry, SourceSite where = SourceSite::current()) const;
  // The parts of a partitioned variable, as entries of their own (their keys are made by slice_key).
  std::vector<CheckpointEntry> parts(const CheckpointEntry& entry, SourceSite where = SourceSite::current()) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

RUNNEL_API uint64_t element_count(const CheckpointEntry& entry);
RUNNEL_API uint64_t byte_size(const CheckpointEntry& entry);  // of the whole tensor, in memory; of tensors of numbers

}  // namespace runnel::io
