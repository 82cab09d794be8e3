#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"
#include "runnel/base/source_site.h"
#include "runnel/io/checkpoint_slice.h"

namespace runnel::io {

// Writes a checkpoint that TensorFlow reads: the values into one shard in the order in which they are added, then the
// index. Nothing stands under the checkpoint's names before finish(), and all of it after; a checkpoint of the same
// prefix is replaced in one step. A crash at any moment leaves the old one or the new one. A failed call makes every
// later one fail. One thread at a time.
class RUNNEL_API CheckpointWriter {
 public:
  // Makes the folder where it is missing.
  explicit CheckpointWriter(const std::string& prefix, Env& env = Env::posix(),
                            SourceSite where = SourceSite::current());
  ~CheckpointWriter();  // without finish() nothing is left behind
  CheckpointWriter(CheckpointWriter&&) noexcept;
  CheckpointWriter& operator=(CheckpointWriter&&) noexcept;

  // A tensor of numbers, its elements row by row, in one piece or in several. `dtype` is a number of runnel::DType. A
  // key is given once; the empty key is taken.
  void add(const std::string& key, int dtype, std::span<const int64_t> shape, ByteSpan bytes,
           SourceSite where = SourceSite::current());
  void add(const std::string& key, int dtype, std::span<const int64_t> shape, std::span<const ByteSpan> pieces,
           SourceSite where = SourceSite::current());
  void add_strings(const std::string& key, std::span<const int64_t> shape, std::span<const std::string_view> strings,
                   SourceSite where = SourceSite::current());
  // Each element a serialized VariantTensorDataProto.
  void add_variants(const std::string& key, std::span<const int64_t> shape, std::span<const std::string_view> variants,
                    SourceSite where = SourceSite::current());
  // A part of a partitioned variable; `shape` is that of the whole. The parts of one variable agree on dtype and shape.
  void add_part(const std::string& key, int dtype, std::span<const int64_t> shape, const CheckpointSlice& slice,
                ByteSpan bytes, SourceSite where = SourceSite::current());
  // A value of another checkpoint as it stands there (CheckpointReader::read_raw), with its masked checksum.
  void add_raw(const std::string& key, int dtype, std::span<const int64_t> shape, uint32_t crc32c, ByteSpan bytes,
               SourceSite where = SourceSite::current());

  uint64_t bytes() const;  // of values, so far
  // The files are on the disk and in their places when this returns. When it fails, nothing is left and an older
  // checkpoint is as it was, except where only the last sync of the folder fails: then the new one is there, and the
  // Error says so.
  void finish(SourceSite where = SourceSite::current());
  // The same; then `and_then` runs before another process may put a checkpoint into the folder.
  void finish(FunctionRef<void()> and_then, SourceSite where = SourceSite::current());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace runnel::io
