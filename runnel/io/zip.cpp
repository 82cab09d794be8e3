#include "runnel/io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/io/file_frame.h"

namespace runnel::io {
namespace {

constexpr uint32_t kMemberMagic = 0x04034b50, kDirectoryMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr size_t kMemberHeader = 30, kDirectoryEntry = 46, kEnd = 22, kEnd64 = 56, kLocator64 = 20;
constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Field = 1, kEncrypted = 1;
constexpr uint32_t kIn64 = 0xffffffff;    // "the value stands in a zip64 field"
constexpr uint64_t kMaxExpansion = 1032;  // of one byte of deflated data

// Little-endian numbers at any place; what lies outside the file is an error.
class ZipBytes {
 public:
  ZipBytes(ByteSpan bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Error bad(uint64_t offset, const std::string& what) const {
    return make_error(Code::data_loss, "[zip] {}: {} at byte {}", name_, what, offset)
        .inside(file_frame(name_, offset));
  }
  ByteSpan part(uint64_t offset, uint64_t size, const char* what) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw bad(offset, fmt::format("{} of {} bytes does not lie in the file of {} bytes", what, size, bytes_.size()));
    }
    return bytes_.subspan(offset, size);
  }
  template <class T>
  T number(uint64_t offset) const {
    T value = 0;
    const ByteSpan part = this->part(offset, sizeof(T), "a number");
    for (size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 7 << 1 | static_cast<uint8_t>(part[i]));
    return value;
  }
  bool has(uint64_t offset, uint32_t magic) const {
    return offset <= bytes_.size() && bytes_.size() - offset >= 4 && number<uint32_t>(offset) == magic;
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  ByteSpan bytes_;
  const std::string& name_;
};

// Where the record stands that ends an archive: in front of a comment of at most 64 KB.
uint64_t find_end(const ZipBytes& file) {
  if (file.size() >= kEnd) {
    const uint64_t last = file.size() - kEnd;
    for (uint64_t comment = 0; comment <= std::min<uint64_t>(last, 0xffff); ++comment) {
      const uint64_t at = last - comment;
      if (file.has(at, kEndMagic) && file.number<uint16_t>(at + 20) == comment) return at;
    }
  }
  throw file.bad(file.size(), "not a zip file, or its end is missing: no end of a directory found");
}

struct Directory {
  uint64_t offset, size, members;
};

Directory find_directory(const ZipBytes& file) {
  const uint64_t end = find_end(file);
  Directory d{file.number<uint32_t>(end + 16), file.number<uint32_t>(end + 12), file.number<uint16_t>(end + 10)};
  const bool in_64 = d.offset == kIn64 || d.size == kIn64 || d.members == 0xffff;
  if (in_64 && end >= kLocator64 && file.has(end - kLocator64, kLocator64Magic)) {
    const auto end64 = file.number<uint64_t>(end - kLocator64 + 8);
    file.part(end64, kEnd64, "the zip64 end of the directory");
    if (!file.has(end64, kEnd64Magic)) throw file.bad(end64, "no zip64 end of the directory");
    d = {file.number<uint64_t>(end64 + 48), file.number<uint64_t>(end64 + 40), file.number<uint64_t>(end64 + 32)};
  }
  file.part(d.offset, d.size, "the directory");
  return d;
}

// Sizes and the offset that did not fit into 32 bits stand in a field of their own, in this order.
void read_zip64_field(const ZipBytes& file, uint64_t at, uint64_t end, ZipMember& member) {
  while (end - at >= 4) {
    const auto id = file.number<uint16_t>(at), size = file.number<uint16_t>(at + 2);
    at += 4;
    if (size > end - at) throw file.bad(at - 4, "an extra field is longer than its place");
    if (id == kZip64Field) {
      uint64_t value = at;
      for (uint64_t* wide : {&member.size, &member.compressed_size, &member.header_offset}) {
        if (*wide != kIn64) continue;
        if (value + 8 > at + size) throw file.bad(at, "a zip64 field is too short");
        *wide = file.number<uint64_t>(value);
        value += 8;
      }
      return;
    }
    at += size;
  }
}

// Deflated data without a frame; it must give exactly out.size() bytes.
void inflate_raw(ByteSpan in, std::span<std::byte> out, const ZipBytes& file, uint64_t offset) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    throw make_error(Code::resource_exhausted, "[zip] no memory to decompress");
  }
  size_t used = 0, done = 0;
  int status = Z_OK;
  std::byte beyond{};  // room for one byte too many shows that there is one
  while (status == Z_OK) {
    const auto limit = std::numeric_limits<uInt>::max();
    const bool full = done == out.size();
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data() + used));
    stream.avail_in = static_cast<uInt>(std::min<size_t>(in.size() - used, limit));
    stream.next_out = reinterpret_cast<Bytef*>(full ? &beyond : out.data() + done);
    stream.avail_out = full ? 1 : static_cast<uInt>(std::min<size_t>(out.size() - done, limit));
    const uInt had = stream.avail_in, room = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    used += had - stream.avail_in;
    done += room - stream.avail_out;
    if (done > out.size()) break;
  }
  const std::string reason = stream.msg != nullptr ? stream.msg : "it ends early";
  inflateEnd(&stream);
  if (done > out.size()) {
    throw file.bad(offset + used, fmt::format("more data than the {} bytes announced", out.size()));
  }
  if (status != Z_STREAM_END) throw file.bad(offset + used, "bad compressed data: " + reason);
  if (done < out.size()) {
    throw file.bad(offset + used, fmt::format("only {} of the {} bytes announced", done, out.size()));
  }
}

uint32_t crc_of(ByteSpan bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::vector<std::byte> deflate_raw(ByteSpan bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw make_error(Code::resource_exhausted, "[zip] no memory to compress");
  }
  std::vector<std::byte> out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);  // the bound leaves room for everything
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

class ZipWriter {
 public:
  void put(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i, value >>= 8) out_.push_back(static_cast<std::byte>(value));
  }
  void put(ByteSpan bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  // What both headers of a member hold, from "version needed" to the length of the name.
  void put_member(const ZipMember& m) {
    put(20, 2);
    put(0x0800, 2);  // the name is UTF-8
    put(m.method, 2);
    put(0, 2);
    put(0x21, 2);  // 1980-01-01
    put(m.crc32, 4);
    put(m.compressed_size, 4);
    put(m.size, 4);
    put(m.name.size(), 2);
  }
  uint64_t size() const { return out_.size(); }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

}  // namespace

std::vector<ZipMember> zip_members(ByteSpan archive, const std::string& name) {
  const ZipBytes file(archive, name);
  const Directory directory = find_directory(file);
  if (directory.members > directory.size / kDirectoryEntry) {
    throw file.bad(directory.offset, fmt::format("{} bytes are too few for a directory of {} members", directory.size,
                                                 directory.members));
  }
  std::vector<ZipMember> members;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.members; ++i) {
    file.part(at, kDirectoryEntry, "an entry of the directory");
    if (!file.has(at, kDirectoryMagic)) throw file.bad(at, fmt::format("no entry {} of the directory", i));
    ZipMember member;
    const auto flags = file.number<uint16_t>(at + 8);
    member.method = file.number<uint16_t>(at + 10);
    member.crc32 = file.number<uint32_t>(at + 16);
    member.compressed_size = file.number<uint32_t>(at + 20);
    member.size = file.number<uint32_t>(at + 24);
    member.header_offset = file.number<uint32_t>(at + 42);
    const uint64_t name_size = file.number<uint16_t>(at + 28), extra = file.number<uint16_t>(at + 30),
                   comment = file.number<uint16_t>(at + 32);
    const uint64_t text = at + kDirectoryEntry;
    const ByteSpan spelled = file.part(text, name_size + extra + comment, "the name of a member").first(name_size);
    member.name.assign(reinterpret_cast<const char*>(spelled.data()), spelled.size());
    read_zip64_field(file, text + name_size, text + name_size + extra, member);
    if ((flags & kEncrypted) != 0) {
      throw make_error(Code::unimplemented, "[zip] {}: '{}' is encrypted", name, member.name);
    }
    members.push_back(std::move(member));
    at = text + name_size + extra + comment;
  }
  return members;
}

std::vector<std::byte> read_zip_member(ByteSpan archive, const ZipMember& member, const std::string& name,
                                       size_t max_bytes) {
  const ZipBytes file(archive, name);
  const uint64_t at = member.header_offset;
  file.part(at, kMemberHeader, "the header of a member");
  if (!file.has(at, kMemberMagic)) throw file.bad(at, fmt::format("no header of the member '{}'", member.name));
  const uint64_t begin = at + kMemberHeader + file.number<uint16_t>(at + 26) + file.number<uint16_t>(at + 28);
  const ByteSpan packed = file.part(begin, member.compressed_size, "the data of a member");
  if (member.size > max_bytes) {
    throw make_error(Code::resource_exhausted, "[zip] {}: '{}' has {} bytes, more than the allowed {}", name,
                     member.name, member.size, max_bytes);
  }
  std::vector<std::byte> bytes;
  if (member.method == kStored) {
    if (member.size != member.compressed_size) {
      throw file.bad(at, fmt::format("'{}' is stored, but {} bytes stand for {}", member.name, member.compressed_size,
                                     member.size));
    }
    bytes.assign(packed.begin(), packed.end());
  } else if (member.method == kDeflated) {
    if (member.size / kMaxExpansion > packed.size()) {
      throw file.bad(
          at, fmt::format("'{}': {} bytes cannot hold the {} announced", member.name, packed.size(), member.size));
    }
    bytes.resize(member.size);
    inflate_raw(packed, bytes, file, begin);
  } else {
    throw make_error(Code::unimplemented, "[zip] {}: '{}' is compressed by method {}; stored and deflated are read",
                     name, member.name, member.method);
  }
  if (const uint32_t crc = crc_of(bytes); crc != member.crc32) {
    throw file.bad(begin,
                   fmt::format("the checksum of '{}' is {:#010x}, expected {:#010x}", member.name, crc, member.crc32));
  }
  return bytes;
}

std::vector<std::byte> zip(const std::vector<ZipEntry>& entries, bool compress) {
  uint64_t total = kEnd;
  for (const ZipEntry& entry : entries) {
    if (entry.name.size() > 0xffff) throw invalid_argument("[zip] a name of {} bytes is too long", entry.name.size());
    total += entry.bytes.size() + 2 * entry.name.size() + kMemberHeader + kDirectoryEntry;
  }
  if (total >= kIn64 || entries.size() >= 0xffff) {
    throw invalid_argument("[zip] {} files of {} bytes together: archives of 4 GiB or 65535 files are not written",
                           entries.size(), total);
  }
  ZipWriter out;
  std::vector<ZipMember> members;
  for (const ZipEntry& entry : entries) {
    std::vector<std::byte> packed;
    if (compress) packed = deflate_raw(entry.bytes);
    const bool smaller = compress && packed.size() < entry.bytes.size();
    const ByteSpan data = smaller ? ByteSpan(packed) : entry.bytes;
    members.push_back({.name = entry.name,
                       .method = smaller ? kDeflated : kStored,
                       .header_offset = out.size(),
                       .compressed_size = data.size(),
                       .size = entry.bytes.size(),
                       .crc32 = crc_of(entry.bytes)});
    out.put(kMemberMagic, 4);
    out.put_member(members.back());
    out.put(0, 2);
    out.put(as_bytes(entry.name));
    out.put(data);
  }
  const uint64_t directory = out.size();
  for (const ZipMember& member : members) {
    out.put(kDirectoryMagic, 4);
    out.put(20, 2);
    out.put_member(member);
    out.put(0, 12);  // no extra fields, comment, disk, attributes
    out.put(member.header_offset, 4);
    out.put(as_bytes(member.name));
  }
  const uint64_t end = out.size();
  out.put(kEndMagic, 4);
  out.put(0, 4);
  out.put(members.size(), 2);
  out.put(members.size(), 2);
  out.put(end - directory, 4);
  out.put(directory, 4);
  out.put(0, 2);
  return out.take();
}

}  // namespace runnel::io
