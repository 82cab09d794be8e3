#include "runnel/io/checkpoint_writer.h"

#include <algorithm>
#include <map>

#include "runnel/base/caller_line.h"
#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/io/checkpoint_commit.h"
#include "runnel/io/checkpoint_entry.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_strings.h"
#include "runnel/io/checkpoint_table.h"

namespace runnel::io {
namespace {

constexpr size_t kGathered = size_t{1} << 20;    // small values are written together
constexpr size_t kWriteBlock = size_t{1} << 19;  // summed up and written while it is in the cache

// "0,5:-"
std::string slice_text(const CheckpointSlice& slice) {
  std::string text;
  for (const CheckpointExtent& extent : slice) {
    if (!text.empty()) text += ':';
    text += extent.length < 0 ? "-" : fmt::format("{},{}", extent.start, extent.length);
  }
  return text;
}

std::vector<int64_t> to_vector(std::span<const int64_t> shape) { return {shape.begin(), shape.end()}; }

}  // namespace

struct CheckpointWriter::State {
  Env& env;
  std::string prefix;
  std::unique_ptr<TemporaryFile> data;  // until finish()
  std::unique_ptr<WritableFile> file;
  std::string gathered;
  std::map<std::string, CheckpointEntry> entries;
  uint64_t written = 0;
  bool failed = false;
  bool finished = false;

  State(const std::string& p, Env& e) : env(e), prefix(p) {
    if (prefix.empty() || prefix.ends_with('/')) {
      throw invalid_argument("[checkpoint] '{}' is no prefix of files; 'save/model.ckpt' is one", prefix);
    }
    attempt([&] {
      create_synced_dirs(parent_dir(prefix), env);
      remove_leftovers(parent_dir(prefix), env);
      data = std::make_unique<TemporaryFile>(checkpoint_shard_path(prefix, 0, 1), env);
      file = env.create(data->path());
    });
  }

  // Runs a step that may fail halfway; the files are then of no use.
  template <class F>
  void attempt(F step) {
    if (finished) throw make_error(Code::failed_precondition, "[checkpoint] {} is finished", prefix);
    if (failed) {
      throw make_error(Code::failed_precondition,
                       "[checkpoint] {}: an earlier write failed; write the checkpoint again", prefix);
    }
    failed = true;
    try {
      step();
    } catch (const Error& error) {
      throw error.reworded(fmt::format("[checkpoint] {} cannot be written: {}", prefix, error.what()));
    }
    failed = false;
  }

  void check_new(const std::string& key) const {
    if (key.empty()) throw invalid_argument("[checkpoint] {}: a value without a key", prefix);
    if (entries.contains(key)) throw invalid_argument("[checkpoint] {}: the key '{}' is given twice", prefix, key);
  }
  void check_size(const std::string& key, int dtype, std::span<const int64_t> shape, uint64_t size) const {
    const size_t element = checkpoint_dtype_size(dtype);
    uint64_t wanted = element;
    for (int64_t dim : shape) wanted *= static_cast<uint64_t>(dim);
    if (element == 0 || wanted != size) {
      throw invalid_argument("[checkpoint] {}: key '{}': {} bytes for a tensor of {} and shape [{}]", prefix, key, size,
                             checkpoint_dtype_name(dtype), comma_separated(shape));
    }
  }
  void check_count(const std::string& key, std::span<const int64_t> shape, size_t count) const {
    uint64_t wanted = 1;
    for (int64_t dim : shape) wanted *= static_cast<uint64_t>(dim);
    if (wanted != count) {
      throw invalid_argument("[checkpoint] {}: key '{}': {} elements for a shape of [{}]", prefix, key, count,
                             comma_separated(shape));
    }
  }

  uint32_t write(uint32_t crc, ByteSpan bytes) {
    while (!bytes.empty()) {
      const ByteSpan block = bytes.first(std::min(kWriteBlock, bytes.size()));
      crc = crc32c_extend(crc, block.data(), block.size());
      if (block.size() < kWriteBlock) {
        gathered.append(reinterpret_cast<const char*>(block.data()), block.size());
        if (gathered.size() >= kGathered) drain();
      } else {
        drain();
        file->append(block);
      }
      bytes = bytes.subspan(block.size());
    }
    return crc;
  }
  void drain() {
    if (!gathered.empty()) file->append(as_bytes(gathered));
    gathered.clear();
  }

  // `size` bytes have been written for it.
  void enter(const std::string& key, int dtype, std::span<const int64_t> shape, uint64_t size, uint32_t masked_crc) {
    entries[key] = {.key = key,
                    .dtype = dtype,
                    .shape = to_vector(shape),
                    .shard = 0,
                    .offset = written,
                    .size = size,
                    .crc32c = masked_crc};
    written += size;
  }

  void add(const std::string& key, int dtype, std::span<const int64_t> shape, std::span<const ByteSpan> pieces) {
    uint64_t size = 0;
    for (ByteSpan piece : pieces) size += piece.size();
    check_new(key);
    check_size(key, dtype, shape, size);
    attempt([&] {
      uint32_t crc = 0;
      for (ByteSpan piece : pieces) crc = write(crc, piece);
      enter(key, dtype, shape, size, crc32c_mask(crc));
    });
  }
  void add_text(const std::string& key, int dtype, std::span<const int64_t> shape, const StringTensorBytes& text) {
    check_new(key);
    attempt([&] {
      write(0, as_bytes(text.bytes));
      enter(key, dtype, shape, text.bytes.size(), crc32c_mask(text.crc32c));
    });
  }

  void add_part(const std::string& key, int dtype, std::span<const int64_t> shape, const CheckpointSlice& slice,
                ByteSpan bytes) {
    const std::vector<int64_t> size = slice_shape(shape, slice);
    if (is_whole(slice)) return add(key, dtype, shape, {&bytes, 1});
    const auto there = entries.find(key);
    if (there == entries.end()) {
      check_new(key);
    } else if (there->second.dtype != dtype || there->second.shape != to_vector(shape) ||
               there->second.slices.empty()) {
      throw invalid_argument("[checkpoint] {}: key '{}': a part of a {} of shape [{}], after one of a {} of shape [{}]",
                             prefix, key, checkpoint_dtype_name(dtype), comma_separated(shape),
                             checkpoint_dtype_name(there->second.dtype), comma_separated(there->second.shape));
    }
    if (there != entries.end()) {
      for (const CheckpointSlice& other : there->second.slices) {
        if (!slices_overlap(shape, slice, other)) continue;
        throw invalid_argument("[checkpoint] {}: key '{}': the parts {} and {} have elements in common", prefix, key,
                               slice_text(other), slice_text(slice));
      }
    }
    add(slice_key(key, slice), dtype, size, {&bytes, 1});
    CheckpointEntry& whole = entries[key];
    whole.key = key;
    whole.dtype = dtype;
    whole.shape = to_vector(shape);
    whole.slices.push_back(slice);
  }

  void finish(FunctionRef<void()> and_then) {
    std::unique_ptr<FileLock> lock;
    attempt([&] {
      drain();
      file->sync();
      file->close();
      file.reset();
      lock = commit_checkpoint(prefix, *data, env, [&](const ShardName& shard) {
        std::map<std::string, std::string> table;
        table[""] = header_bytes({.num_shards = shard.shards});
        for (auto& [key, entry] : entries) {
          if (entry.slices.empty()) entry.shard = shard.shard;
          table[key] = entry_bytes(entry);
        }
        return write_table(table);
      });
    });
    finished = true;
    and_then();
  }
};

CheckpointWriter::CheckpointWriter(const std::string& prefix, Env& env, SourceSite where)
    : state_(at_caller(where, [&] { return std::make_unique<State>(prefix, env); })) {}
CheckpointWriter::~CheckpointWriter() = default;
CheckpointWriter::CheckpointWriter(CheckpointWriter&&) noexcept = default;
CheckpointWriter& CheckpointWriter::operator=(CheckpointWriter&&) noexcept = default;

void CheckpointWriter::add(const std::string& key, int dtype, std::span<const int64_t> shape, ByteSpan bytes,
                           SourceSite where) {
  at_caller(where, [&] { state_->add(key, dtype, shape, {&bytes, 1}); });
}
void CheckpointWriter::add(const std::string& key, int dtype, std::span<const int64_t> shape,
                           std::span<const ByteSpan> pieces, SourceSite where) {
  at_caller(where, [&] { state_->add(key, dtype, shape, pieces); });
}
void CheckpointWriter::add_strings(const std::string& key, std::span<const int64_t> shape,
                                   std::span<const std::string_view> strings, SourceSite where) {
  at_caller(where, [&] {
    state_->check_count(key, shape, strings.size());
    state_->add_text(key, kCheckpointString, shape, strings_to_bytes(strings));
  });
}
void CheckpointWriter::add_variants(const std::string& key, std::span<const int64_t> shape,
                                    std::span<const std::string_view> variants, SourceSite where) {
  at_caller(where, [&] {
    state_->check_count(key, shape, variants.size());
    state_->add_text(key, kCheckpointVariant, shape, variants_to_bytes(variants));
  });
}
void CheckpointWriter::add_part(const std::string& key, int dtype, std::span<const int64_t> shape,
                                const CheckpointSlice& slice, ByteSpan bytes, SourceSite where) {
  at_caller(where, [&] { state_->add_part(key, dtype, shape, slice, bytes); });
}
void CheckpointWriter::add_raw(const std::string& key, int dtype, std::span<const int64_t> shape, uint32_t crc32c,
                               ByteSpan bytes, SourceSite where) {
  at_caller(where, [&] {
    state_->check_new(key);
    state_->attempt([&] {
      state_->write(0, bytes);
      state_->enter(key, dtype, shape, bytes.size(), crc32c);
    });
  });
}

uint64_t CheckpointWriter::bytes() const { return state_->written; }
void CheckpointWriter::finish(SourceSite where) {
  at_caller(where, [&] { state_->finish([] {}); });
}
void CheckpointWriter::finish(FunctionRef<void()> and_then, SourceSite where) {
  at_caller(where, [&] { state_->finish(and_then); });
}

}  // namespace runnel::io
