#include "runnel/io/compression.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/gzip.h"

namespace runnel::io {
namespace {

constexpr int gzip_framing = 16;  // added to the window bits

// zlib counts in 32 bits, so larger inputs are handed over in pieces.
uInt piece(size_t n) { return static_cast<uInt>(std::min<size_t>(n, std::numeric_limits<uInt>::max())); }

// zlib's pointers are not const in every version; it only reads what next_in points to.
Bytef* input(ByteSpan bytes) { return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data())); }

bool begins_member(ByteSpan bytes, Compression compression) {
  return compression == Compression::gzip ? is_gzip(bytes) : is_zlib(bytes);
}

}  // namespace

const char* compression_name(Compression compression) {
  switch (compression) {
    case Compression::none: return "";
    case Compression::gzip: return "GZIP";
    case Compression::zlib: return "ZLIB";
  }
  return "";
}

Compression compression_from_name(const std::string& name, SourceSite where) {
  return at_caller(where, [&]() -> Compression {
    if (name.empty()) return Compression::none;
    if (name == "GZIP" || name == "gzip") return Compression::gzip;
    if (name == "ZLIB" || name == "zlib") return Compression::zlib;
    throw invalid_argument("unknown compression '{}': it is '' (none), 'GZIP' or 'ZLIB'", name);
  });
}

bool is_zlib(ByteSpan bytes) {
  if (bytes.size() < 2) return false;
  auto first = static_cast<unsigned>(bytes[0]), second = static_cast<unsigned>(bytes[1]);
  return (first & 0x0f) == 8 && (first >> 4) <= 7 && (first * 256 + second) % 31 == 0;
}

struct InflateReader::State {
  ByteSpan bytes;
  Compression compression;
  std::string name;
  z_stream stream{};
  size_t used = 0;
  bool member_ended = false;
  bool ended = false;
  std::optional<Error> failure;

  State(ByteSpan all, Compression c, std::string n) : bytes(all), compression(c), name(std::move(n)) {
    if (compression == Compression::none) throw invalid_argument("{}: plain data cannot be decompressed", name);
    if (inflateInit2(&stream, MAX_WBITS + (compression == Compression::gzip ? gzip_framing : 0)) != Z_OK) {
      throw make_error(Code::resource_exhausted, "{}: no memory to decompress", name);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  // Between members: true if another one begins.
  bool next_member() {
    ByteSpan rest = bytes.subspan(used);
    if (begins_member(rest, compression)) {
      inflateReset(&stream);
      member_ended = false;
      return true;
    }
    ended = true;
    if (std::any_of(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; })) {
      failure = make_error(Code::data_loss, "{}: {} bytes that are not {} follow the compressed data at byte {}", name,
                           rest.size(), compression_name(compression), used);
    }
    return false;
  }

  size_t step(std::span<std::byte> out) {
    stream.next_in = input(bytes.subspan(used));
    stream.avail_in = piece(bytes.size() - used);
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = piece(out.size());
    const uInt had = stream.avail_in, room = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    used += had - stream.avail_in;
    const size_t produced = room - stream.avail_out;
    if (status == Z_STREAM_END) {
      member_ended = true;
    } else if (status == Z_BUF_ERROR || (status == Z_OK && produced == 0 && used == bytes.size())) {
      failure = make_error(Code::data_loss, "{}: ends at byte {} inside the compressed data", name, used);
    } else if (status != Z_OK) {
      failure = make_error(Code::data_loss, "{}: bad compressed data near byte {}: {}", name, used,
                           stream.msg != nullptr ? stream.msg : "no such format");
    }
    return produced;
  }
};

InflateReader::InflateReader(ByteSpan bytes, Compression compression, std::string name)
    : state_(std::make_unique<State>(bytes, compression, std::move(name))) {}
InflateReader::~InflateReader() = default;
InflateReader::InflateReader(InflateReader&&) noexcept = default;
InflateReader& InflateReader::operator=(InflateReader&&) noexcept = default;

size_t InflateReader::read(std::span<std::byte> out, SourceSite where) {
  return at_caller(where, [&]() -> size_t {
    State& s = *state_;
    size_t done = 0;
    while (done < out.size() && !s.failure) {
      if (s.ended || (s.member_ended && !s.next_member())) break;
      done += s.step(out.subspan(done));
    }
    if (done == 0 && !out.empty() && s.failure) throw Error(*s.failure);
    return done;
  });
}

uint64_t InflateReader::consumed() const { return state_->used; }

void InflateReader::rewind() {
  inflateReset(&state_->stream);
  state_->used = 0;
  state_->member_ended = state_->ended = false;
  state_->failure.reset();
}

struct DeflateWriter::State {
  z_stream stream{};
  std::vector<std::byte> out = std::vector<std::byte>(size_t{1} << 16);
};

DeflateWriter::DeflateWriter(Compression compression, const DeflateOptions& options)
    : state_(std::make_unique<State>()) {
  if (compression == Compression::none) throw invalid_argument("a compressing writer needs GZIP or ZLIB");
  const int window = options.window_bits + (compression == Compression::gzip ? gzip_framing : 0);
  if (options.window_bits < 9 || options.window_bits > MAX_WBITS ||
      deflateInit2(&state_->stream, options.level, Z_DEFLATED, window, options.mem_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw invalid_argument(
        "compression options out of range: level {} (-1 to 9), window_bits {} (9 to 15), mem_level {} "
        "(1 to 9)",
        options.level, options.window_bits, options.mem_level);
  }
}

DeflateWriter::~DeflateWriter() { deflateEnd(&state_->stream); }

void DeflateWriter::pump(ByteSpan bytes, int mode, Sink sink) {
  z_stream& stream = state_->stream;
  std::vector<std::byte>& out = state_->out;
  size_t used = 0;
  int status = Z_OK;
  do {
    stream.next_in = input(bytes.subspan(used));
    stream.avail_in = piece(bytes.size() - used);
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = piece(out.size());
    const uInt had = stream.avail_in;
    const bool last = had == bytes.size() - used;
    status = deflate(&stream, last ? mode : Z_NO_FLUSH);
    used += had - stream.avail_in;
    const size_t ready = out.size() - stream.avail_out;
    if (ready > 0) sink(ByteSpan(out).first(ready));
  } while (stream.avail_out == 0 || used < bytes.size() || (mode == Z_FINISH && status == Z_OK));
}

void DeflateWriter::write(ByteSpan bytes, Sink sink, SourceSite where) {
  at_caller(where, [&] {
    if (!bytes.empty()) pump(bytes, Z_NO_FLUSH, sink);
  });
}
void DeflateWriter::flush(Sink sink, SourceSite where) {
  at_caller(where, [&] { pump({}, Z_SYNC_FLUSH, sink); });
}
void DeflateWriter::finish(Sink sink, SourceSite where) {
  at_caller(where, [&] { pump({}, Z_FINISH, sink); });
}

}  // namespace runnel::io
