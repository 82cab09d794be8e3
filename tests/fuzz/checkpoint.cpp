#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include "runnel/base/crc32c.h"
#include "runnel/base/error.h"
#include "runnel/base/varint.h"
#include "runnel/io/checkpoint_entry.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_table.h"

using namespace runnel;

namespace {

// A file in memory.
class MemoryFile : public SequentialFile, public RandomAccessFile {
 public:
  explicit MemoryFile(ByteSpan bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  size_t read(std::span<std::byte> out) override {
    const size_t got = read(at_, out);
    at_ += got;
    return got;
  }
  size_t read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= bytes_.size()) return 0;
    const size_t got = std::min<size_t>(out.size(), bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + offset, got);
    return got;
  }

 private:
  ByteSpan bytes_;
  size_t at_ = 0;
};

// One checkpoint: "c.index", and the same bytes as every shard.
class MemoryEnv : public EnvWrapper {
 public:
  MemoryEnv(ByteSpan index, ByteSpan shard) : EnvWrapper(Env::posix()), index_(index), shard_(shard) {}
  std::unique_ptr<SequentialFile> open_sequential(const std::string& path) override {
    return std::make_unique<MemoryFile>(file(path));
  }
  std::unique_ptr<RandomAccessFile> open_random(const std::string& path) override {
    return std::make_unique<MemoryFile>(file(path));
  }
  FileInfo stat(const std::string& path) override { return {.size = file(path).size()}; }
  bool exists(const std::string&) override { return true; }

 private:
  ByteSpan file(const std::string& path) const { return path.ends_with(".index") ? index_ : shard_; }
  ByteSpan index_, shard_;
};

// Gives blocks the checksums that they should have, as far as they can be found: changed bytes then reach the parser.
class ChecksumRepair {
 public:
  explicit ChecksumRepair(std::string& file) : file_(file) {}
  void run() {
    if (file_.size() < 48) return;
    const char* p = file_.data() + file_.size() - 48;
    const char* end = p + 40;
    uint64_t numbers[4];
    for (uint64_t& number : numbers) {
      p = get_varint(p, end, &number);
      if (p == nullptr) return;
    }
    repair(numbers[0], numbers[1]);
    if (!repair(numbers[2], numbers[3])) return;
    p = file_.data() + numbers[2];
    end = p + numbers[3];
    while (p < end) {  // entries of the block of block handles
      uint64_t shared = 0, added = 0, size = 0, offset = 0, bytes = 0;
      p = get_varint(p, end, &shared);
      if (p != nullptr) p = get_varint(p, end, &added);
      if (p != nullptr) p = get_varint(p, end, &size);
      if (p == nullptr || added > static_cast<size_t>(end - p) || size > static_cast<size_t>(end - p) - added) return;
      const char* value = p + added;
      p = value + size;
      if ((value = get_varint(value, p, &offset)) == nullptr || get_varint(value, p, &bytes) == nullptr) return;
      repair(offset, bytes);
    }
  }

 private:
  bool repair(uint64_t offset, uint64_t size) {
    if (offset > file_.size() || size > file_.size() - offset || file_.size() - offset - size < 5) return false;
    store_fixed32(file_.data() + offset + size + 1, crc32c_mask(crc32c(file_.data() + offset, size + 1)));
    return true;
  }
  std::string& file_;
};

void read_whole(const io::CheckpointReader& reader) {
  for (const io::CheckpointEntry& entry : reader.entries()) {
    if (reader.find(entry.key) != &entry) std::abort();
    try {
      reader.check(entry);
      if (entry.dtype == io::kCheckpointString || entry.dtype == io::kCheckpointVariant) {
        if (reader.read_strings(entry).size() != element_count(entry)) std::abort();
      } else if (io::checkpoint_dtype_size(entry.dtype) != 0 && byte_size(entry) < (size_t{1} << 20)) {
        std::vector<std::byte> bytes(byte_size(entry));
        reader.read(entry, bytes);
      } else if (entry.slices.empty()) {
        reader.read_raw(entry);
      }
    } catch (const Error&) {  // other values can still be read
    }
  }
}

}  // namespace

// The first byte: whether checksums of blocks are repaired; two bytes: the size of the index; the index; the shard. An
// Error, or a checkpoint whose values can be read or are Errors themselves. A table that is read comes back from the
// bytes it is written as.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const size_t wanted = data[1] + 256u * data[2];
  std::string index(reinterpret_cast<const char*>(data) + 3, std::min(wanted, size - 3));
  if (data[0] % 2 == 1) ChecksumRepair(index).run();
  const std::string shard(reinterpret_cast<const char*>(data) + 3 + index.size(), size - 3 - index.size());
  MemoryEnv env(as_bytes(index), as_bytes(shard));
  try {
    std::map<std::string, std::string> table, again;
    io::read_table(as_bytes(index), "c.index",
                   [&](std::string_view key, std::string_view value) { table.emplace(key, value); });
    const std::string written = io::write_table(table);
    io::read_table(as_bytes(written), "c.index",
                   [&](std::string_view key, std::string_view value) { again.emplace(key, value); });
    if (again != table) std::abort();
    read_whole(io::CheckpointReader("c", env));
  } catch (const Error&) {
  }
  return 0;
}
