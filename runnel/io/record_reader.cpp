#include "runnel/io/record_reader.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runnel/base/caller_line.h"
#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/base/moved_from.h"
#include "runnel/base/varint.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/gzip.h"
#include "runnel/io/origin.h"

namespace runnel::io {
namespace {

bool valid_header(const std::byte* p) { return crc32c_mask(crc32c(p, 8)) == load_fixed32(p + 8); }

// Asks for what comes after the next few records while this one is checked: the processor stops reading ahead at the
// end of each page.
void prefetch(const std::byte* behind, size_t size) {
  constexpr size_t ahead = 4096, line = 64, most = 32;
  const std::byte* p = behind + ahead;
  for (size_t i = 0; i < std::min(size / line + 1, most); ++i) __builtin_prefetch(p + i * line);
}

// A plain file's first header carries a checksum, which a compressed stream cannot have by chance.
Compression detect(ByteSpan bytes) {
  if (bytes.size() >= kRecordHeader && valid_header(bytes.data())) return Compression::none;
  if (is_gzip(bytes)) return Compression::gzip;
  if (is_zlib(bytes)) return Compression::zlib;
  return Compression::none;
}

}  // namespace

struct RecordReader::State {
  struct Block {
    explicit Block(size_t size) : bytes(size) {}
    std::vector<std::byte> bytes;
    std::optional<OriginMark> mark;  // of what is in `bytes` now
  };

  std::string path;
  Compression compression = Compression::none;
  bool verify = true;
  size_t buffer_size = 0;

  std::shared_ptr<const void> file_owner;
  ByteSpan file;

  // Decompressed data, if any: `window` is the part of `block` not yet handed out.
  std::optional<InflateReader> inflate;
  std::shared_ptr<Block> block;
  bool inflate_ended = false;
  std::optional<Error> inflate_error;

  ByteSpan window;  // from the next record on: the rest of the mapped file, or of the block
  RecordPosition at;
  RecordError error;
  uint64_t damaged_size = 0;  // of the whole damaged record, 0 if unknown

  State(std::shared_ptr<const void> owner, ByteSpan bytes, std::string name, const RecordReaderOptions& options)
      : path(std::move(name)),
        compression(options.detect_compression ? detect(bytes) : options.compression),
        verify(options.verify),
        buffer_size(std::max<size_t>(options.buffer_size, 1024)),
        file_owner(std::move(owner)),
        file(bytes) {
    if (compression != Compression::none && !bytes.empty()) {
      inflate.emplace(bytes, compression, fmt::format("{} as {}", path, compression_name(compression)));
    } else {
      window = bytes;
    }
  }

  // Makes the window at least n bytes long; false if the data ends before that.
  bool require(size_t n) {
    if (window.size() >= n) return true;
    return inflate && refill(n);
  }

  bool refill(size_t n) {
    // Lengths come from the file: the buffer grows only as fast as data really arrives.
    while (window.size() < n && !inflate_ended) {
      const size_t kept = window.size();
      const size_t wanted = std::max(std::min(n, 2 * kept), buffer_size);
      const bool shared = block.use_count() > 1;  // somebody still looks at records inside
      if (block == nullptr || shared || block->bytes.size() < wanted) {
        auto larger = std::make_shared<Block>(wanted);
        if (kept > 0) std::memcpy(larger->bytes.data(), window.data(), kept);
        block = std::move(larger);
      } else if (kept > 0) {
        std::memmove(block->bytes.data(), window.data(), kept);
      }
      size_t got = 0;
      try {
        got = inflate->read(std::span(block->bytes).subspan(kept));
      } catch (const Error& failure) {
        inflate_error = failure;
      }
      inflate_ended = got == 0;
      window = ByteSpan(block->bytes.data(), kept + got);
      mark_window();
    }
    return window.size() >= n;
  }

  // What the window holds begins with the record at `at`.
  void mark_window() {
    block->mark.reset();
    block->mark.emplace(window, path, at);
  }

  // What stands there in the place of a first record that makes no sense. Any file may be cut inside its first header:
  // of one that short, only bytes that can hardly be a length tell another kind.
  std::string no_record_file() const {
    const bool cut = window.size() < kRecordHeader;
    // Before zlib, whose first two bytes may be letters.
    const auto readable = [](std::byte b) {
      const auto c = static_cast<unsigned char>(b);
      return (c >= 0x20 && c < 0x7f) || (c >= '\t' && c <= '\r');
    };
    constexpr size_t kSome = 64, kLength = sizeof(uint64_t);
    const bool text = std::ranges::all_of(window.first(std::min(window.size(), kSome)), readable) &&
                      (!cut || window.size() >= kLength);
    if (cut && !text && !is_gzip(window)) return "";
    if (compression != Compression::none) {
      return fmt::format("; what the {} data holds is no TFRecord file", compression_name(compression));
    }
    if (is_gzip(window)) return "; the file looks like GZIP: open it with that compression";
    if (text) return "; this does not look like a TFRecord file, but like text";
    if (is_zlib(window)) return "; the file looks like ZLIB: open it with that compression";
    return "; this does not look like a TFRecord file (or it is compressed: open it with compression GZIP or ZLIB)";
  }

  Status damaged(std::string what, uint64_t size = 0) {
    if (inflate_error) {
      what = inflate_error->what();
    } else if (at.offset == 0 && !(window.size() >= kRecordHeader && valid_header(window.data()))) {
      what += no_record_file();
    }
    error = {.code = Code::data_loss, .what = std::move(what), .offset = at.offset, .record = at.record};
    damaged_size = size;
    return Status::damaged;
  }

  Status read(ByteSpan* record) {
    if (!require(kRecordHeader)) [[unlikely]] {
      if (window.empty() && !inflate_error) return Status::end;
      return damaged(fmt::format("truncated header ({} of {} bytes left)", window.size(), kRecordHeader));
    }
    if (!valid_header(window.data())) [[unlikely]]
      return damaged("bad length checksum");
    const uint64_t length = load_fixed64(window.data());
    constexpr uint64_t frame = kRecordHeader + kRecordFooter;
    if (length > SIZE_MAX - frame || !require(static_cast<size_t>(length + frame))) [[unlikely]] {
      return damaged(fmt::format("truncated record (length {}, {} bytes left)", length, window.size() - kRecordHeader));
    }
    const std::byte* data = window.data() + kRecordHeader;
    const auto size = static_cast<size_t>(length);
    prefetch(data + size, size);
    if (verify && crc32c_mask(crc32c(data, size)) != load_fixed32(data + size)) [[unlikely]] {
      return damaged("bad data checksum", length + frame);
    }
    *record = {data, size};
    step(length + frame);
    return Status::record;
  }

  void step(uint64_t size) {
    window = window.subspan(static_cast<size_t>(size));
    at.offset += size;
    ++at.record;
  }

  void seek(const RecordPosition& to) {
    if (!inflate) {
      if (to.offset > file.size()) {
        throw make_error(Code::out_of_range, "{}: cannot go to byte {} of {}: has the file been replaced?", path,
                         to.offset, file.size());
      }
      window = file.subspan(static_cast<size_t>(to.offset));
    } else {
      if (to.offset < at.offset) {
        inflate->rewind();
        inflate_ended = false;
        inflate_error.reset();
        window = {};
        at = {};
      }
      uint64_t skip = to.offset - at.offset;
      while (skip > 0) {
        if (window.empty() && !refill(1)) {
          if (inflate_error) throw Error(*inflate_error);
          throw make_error(Code::out_of_range, "{}: cannot go to byte {}: the data ends {} bytes before it", path,
                           to.offset, skip);
        }
        const auto here = static_cast<size_t>(std::min<uint64_t>(skip, window.size()));
        window = window.subspan(here);
        skip -= here;
      }
    }
    at = to;
    if (block != nullptr) mark_window();
  }
};

RecordReader::RecordReader(const std::string& path, const RecordReaderOptions& options, Env& env, SourceSite where) {
  at_caller(where, [&] {
    std::shared_ptr<MappedFile> file = map_records(path, env);
    const ByteSpan bytes = file->bytes();
    state_ = std::make_unique<State>(std::move(file), bytes, path, options);
  });
}

RecordReader::RecordReader(std::shared_ptr<const void> owner, ByteSpan bytes, std::string name,
                           const RecordReaderOptions& options, SourceSite where) {
  at_caller(where, [&] { state_ = std::make_unique<State>(std::move(owner), bytes, std::move(name), options); });
}

RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader& RecordReader::operator=(RecordReader&&) noexcept = default;

RecordReader::State& RecordReader::state(const SourceSite& where) const {
  if (!state_) [[unlikely]]
    throw_moved_from("RecordReader", where);
  return *state_;
}

RecordReader::Status RecordReader::read(ByteSpan* record) { return state().read(record); }

const RecordError& RecordReader::error() const { return state().error; }

std::optional<ByteSpan> RecordReader::next(SourceSite where) {
  ByteSpan record;
  switch (state(where).read(&record)) {
    case Status::record: return record;
    case Status::end: return std::nullopt;
    case Status::damaged: break;
  }
  throw_error(where);
}

void RecordReader::throw_error(SourceSite where) const {
  const State& s = state(where);
  const RecordError& e = s.error;
  throw at_line(make_error(e.code, "[TFRecord] {}: record {} at byte {}: {}", s.path, e.record, e.offset, e.what)
                    .inside(file_frame(s.path, e.offset)),
                where);
}

std::shared_ptr<const void> RecordReader::owner() const {
  const State& s = state();
  if (s.inflate) return s.block;
  return s.file_owner;
}

bool RecordReader::skip_damaged() {
  State& s = state();
  if (s.damaged_size == 0 || s.error.offset != s.at.offset) return false;
  s.step(s.damaged_size);
  s.damaged_size = 0;
  return true;
}

RecordPosition RecordReader::position() const { return state().at; }
void RecordReader::seek(const RecordPosition& position, SourceSite where) {
  State& s = state(where);
  at_caller(where, [&] { s.seek(position); });
}
const std::string& RecordReader::path() const { return state().path; }
Compression RecordReader::compression() const { return state().compression; }
uint64_t RecordReader::file_size() const { return state().file.size(); }
uint64_t RecordReader::file_position() const {
  const State& s = state();
  return s.inflate ? s.inflate->consumed() : s.at.offset;
}

}  // namespace runnel::io
