#include "runnel/io/checkpoint_table.h"

#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <snappy.h>

#include <algorithm>
#include <memory>

#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/base/varint.h"
#include "runnel/io/file_frame.h"

namespace runnel::io {
namespace {

constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr size_t kFooterSize = 48, kTrailerSize = 5;
constexpr size_t kBlockSize = 262144;

struct BlockHandle {
  uint64_t offset = 0, size = 0;
};

const char* get_handle(const char* p, const char* end, BlockHandle* handle) {
  p = get_varint(p, end, &handle->offset);
  return p == nullptr ? nullptr : get_varint(p, end, &handle->size);
}

// LevelDB trusts the numbers inside of a block whose checksum is right, and those of the footer. So all of them are
// checked before it sees the table.
class TableCheck {
 public:
  TableCheck(std::string_view file, const std::string& path) : file_(file), path_(path) {}

  void run() {
    if (file_.size() < kFooterSize) {
      throw bad(file_.size(),
                fmt::format("the file ends inside the footer of {} bytes; it is cut short, or no index of "
                            "a checkpoint",
                            kFooterSize));
    }
    footer_ = file_.size() - kFooterSize;
    if (load_fixed64(file_.data() + file_.size() - 8) != kTableMagic) {
      throw bad(file_.size() - 8, "the magic number is wrong; the file is cut short, or no index of a checkpoint");
    }
    BlockHandle meta, index;
    const char* end = file_.data() + file_.size() - 8;
    const char* p = get_handle(file_.data() + footer_, end, &meta);
    if (p != nullptr) p = get_handle(p, end, &index);
    if (p == nullptr) throw bad(footer_, "the footer makes no sense");
    check_handle(meta, footer_);
    check_handle(index, footer_);
    std::vector<BlockHandle> blocks;
    check_block(index, [&](std::string_view value) {
      BlockHandle block;
      if (get_handle(value.data(), value.data() + value.size(), &block) == nullptr) {
        throw bad(index.offset, "the block of block handles makes no sense");
      }
      check_handle(block, index.offset);
      blocks.push_back(block);
    });
    for (const BlockHandle& block : blocks) {
      check_block(block, [](std::string_view) {});
    }
  }

  Error bad(uint64_t offset, const std::string& what) const {
    return make_error(Code::data_loss, "[checkpoint] {}: {} at byte {}", path_, what, offset)
        .inside(file_frame(path_, offset));
  }

 private:
  void check_handle(const BlockHandle& block, uint64_t named_at) const {
    if (block.offset > footer_ || footer_ - block.offset < kTrailerSize ||
        block.size > footer_ - block.offset - kTrailerSize) {
      throw bad(named_at, "a block is said to lie outside of the file");
    }
  }

  // What the block holds, unpacked into `room` where it is compressed.
  std::string_view contents(const BlockHandle& block, std::string& room) const {
    const char* p = file_.data() + block.offset;
    const std::string_view packed(p, block.size);
    if (crc32c_unmask(load_fixed32(p + block.size + 1)) != crc32c(p, block.size + 1)) {
      throw bad(block.offset, "the checksum of a block is wrong");
    }
    if (p[block.size] == leveldb::kNoCompression) return packed;
    if (p[block.size] != leveldb::kSnappyCompression) throw bad(block.offset, "a block of unknown compression");
    size_t size = 0;
    // No three bytes unpack to more than 64.
    if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &size) || size / 64 > packed.size() ||
        !snappy::Uncompress(packed.data(), packed.size(), &room)) {
      throw bad(block.offset, "a block that cannot be decompressed");
    }
    return room;
  }

  // Entries of (bytes shared with the key before, further bytes of the key, size of the value), the key's bytes and the
  // value's; then the places where no byte is shared, and how many they are.
  template <class Each>
  void check_block(const BlockHandle& handle, Each each) {
    std::string room;
    const std::string_view block = contents(handle, room);
    const auto broken = [&] { return bad(handle.offset, "a block that makes no sense"); };
    if (block.size() < 4) throw broken();
    const uint64_t restarts = load_fixed32(block.data() + block.size() - 4);
    if (restarts > (block.size() - 4) / 4 || restarts == 0) throw broken();
    const char* p = block.data();
    const char* end = block.data() + block.size() - 4 * (restarts + 1);
    for (uint64_t i = 0; i < restarts; ++i) {
      const uint32_t place = load_fixed32(end + 4 * i);
      if (place > static_cast<size_t>(end - block.data()) || (i == 0 && place != 0)) throw broken();
    }
    uint64_t key_size = 0;
    while (p < end) {
      uint64_t shared = 0, added = 0, size = 0;
      p = get_varint(p, end, &shared);
      if (p != nullptr) p = get_varint(p, end, &added);
      if (p != nullptr) p = get_varint(p, end, &size);
      if (p == nullptr || shared > key_size || added > static_cast<size_t>(end - p) ||
          size > static_cast<size_t>(end - p) - added) {
        throw broken();
      }
      key_size = shared + added;
      all_keys_ += key_size;
      // A small file must not become a large memory: keys that share all but a byte with the one before.
      if (all_keys_ > std::max<uint64_t>(uint64_t{1} << 26, file_.size() * 64)) {
        throw bad(handle.offset, "keys that are too long for the size of the file");
      }
      each(std::string_view(p + added, size));
      p += added + size;
    }
  }

  std::string_view file_;
  const std::string& path_;
  uint64_t footer_ = 0;
  uint64_t all_keys_ = 0;
};

class TableFile : public leveldb::RandomAccessFile {
 public:
  explicit TableFile(std::string_view bytes) : bytes_(bytes) {}
  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result, char*) const override {
    if (offset > bytes_.size()) return leveldb::Status::IOError("past the end");
    const std::string_view part = bytes_.substr(offset, n);
    *result = leveldb::Slice(part.data(), part.size());
    return leveldb::Status::OK();
  }

 private:
  std::string_view bytes_;
};

class TableText : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

}  // namespace

void read_table(ByteSpan bytes, const std::string& path,
                FunctionRef<void(std::string_view key, std::string_view value)> each) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TableCheck check(text, path);
  check.run();
  const TableFile file(text);
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Table* opened = nullptr;
  leveldb::Status status = leveldb::Table::Open(options, const_cast<TableFile*>(&file), bytes.size(), &opened);
  if (!status.ok()) throw check.bad(0, status.ToString());
  const std::unique_ptr<leveldb::Table> table(opened);
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> at(table->NewIterator(read));
  std::string last;
  bool first = true;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string_view key(at->key().data(), at->key().size());
    if (!first && key <= last) throw check.bad(0, fmt::format("the keys are out of order from '{}' on", key));
    first = false;
    last = key;
    each(key, {at->value().data(), at->value().size()});
  }
  if (!at->status().ok()) throw check.bad(0, at->status().ToString());
}

std::string write_table(const std::map<std::string, std::string>& entries) {
  leveldb::Options options;
  options.block_size = kBlockSize;
  options.compression = leveldb::kNoCompression;
  TableText file;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  if (const leveldb::Status status = builder.Finish(); !status.ok()) {
    throw make_error(Code::internal, "[checkpoint] the index cannot be made: {}", status.ToString());
  }
  return std::move(file.bytes);
}

}  // namespace runnel::io
