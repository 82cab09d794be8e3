#include "runnel/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

constexpr int gzip_window = 15 + 16;  // the largest window, gzip framing

// zlib counts in 32 bits, so larger inputs are handed over in pieces.
uInt piece(size_t n) { return static_cast<uInt>(std::min<size_t>(n, std::numeric_limits<uInt>::max())); }

// zlib's pointers are not const in every version; it only reads what next_in points to.
Bytef* input(ByteSpan bytes) { return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data())); }

}  // namespace

bool is_gzip(ByteSpan bytes) { return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b}; }

std::vector<std::byte> gunzip(ByteSpan bytes, const std::string& name, size_t max_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, gzip_window) != Z_OK) throw Error(Code::resource_exhausted, "[gunzip] no memory");
  struct Guard {
    z_stream& stream;
    ~Guard() { inflateEnd(&stream); }
  } guard{stream};

  std::vector<std::byte> out;
  std::vector<std::byte> chunk(1 << 18);
  size_t read = 0;
  bool ended = false;
  while (true) {
    if (ended) {
      if (!is_gzip(bytes.subspan(read))) break;  // what follows the last member is padding
      inflateReset(&stream);
      ended = false;
    }
    stream.next_in = input(bytes.subspan(read));
    stream.avail_in = piece(bytes.size() - read);
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    uInt had = stream.avail_in;
    int status = inflate(&stream, Z_NO_FLUSH);
    read += had - stream.avail_in;
    size_t produced = chunk.size() - stream.avail_out;
    if (produced > max_bytes - out.size()) {
      throw make_error(Code::resource_exhausted, "[gunzip] {}: more than the allowed {} bytes when decompressed", name,
                       max_bytes);
    }
    out.insert(out.end(), chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(produced));
    if (status == Z_STREAM_END) {
      ended = true;
    } else if (status == Z_BUF_ERROR || (status == Z_OK && produced == 0 && read == bytes.size())) {
      throw make_error(Code::data_loss, "[gunzip] {}: ends at byte {} inside the compressed data", name, read);
    } else if (status != Z_OK) {
      throw make_error(Code::data_loss, "[gunzip] {}: bad compressed data near byte {}: {}", name, read,
                       stream.msg != nullptr ? stream.msg : "not gzip");
    }
  }
  return out;
}

std::vector<std::byte> gzip(ByteSpan bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(Code::resource_exhausted, "[gzip] no memory");
  }
  struct Guard {
    z_stream& stream;
    ~Guard() { deflateEnd(&stream); }
  } guard{stream};
  std::vector<std::byte> out;
  std::vector<std::byte> chunk(1 << 18);
  size_t read = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    stream.next_in = input(bytes.subspan(read));
    stream.avail_in = piece(bytes.size() - read);
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    uInt had = stream.avail_in;
    status = deflate(&stream, read + had == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    read += had - stream.avail_in;
    out.insert(out.end(), chunk.begin(), chunk.end() - stream.avail_out);
  }
  return out;
}

}  // namespace runnel::io
