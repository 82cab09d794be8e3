#include "runnel/io/gzip.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/compression.h"

namespace runnel::io {

bool is_gzip(ByteSpan bytes) { return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b}; }

std::vector<std::byte> gunzip(ByteSpan bytes, const std::string& name, size_t max_bytes) {
  InflateReader reader(bytes, Compression::gzip, "[gunzip] " + name);
  std::vector<std::byte> out;
  while (true) {
    constexpr size_t piece = 1 << 18;
    const size_t had = out.size();
    const size_t wanted = std::min(piece, max_bytes - had);
    out.resize(had + wanted + 1);  // one byte more than allowed shows that there is too much
    const size_t got = reader.read(std::span(out).subspan(had));
    out.resize(had + got);
    if (out.size() > max_bytes) {
      throw make_error(Code::resource_exhausted, "[gunzip] {}: more than the allowed {} bytes when decompressed", name,
                       max_bytes);
    }
    if (got == 0) return out;
  }
}

std::vector<std::byte> gzip(ByteSpan bytes) {
  std::vector<std::byte> out;
  auto sink = [&](ByteSpan ready) { out.insert(out.end(), ready.begin(), ready.end()); };
  DeflateWriter writer(Compression::gzip, {});
  writer.write(bytes, sink);
  writer.finish(sink);
  return out;
}

}  // namespace runnel::io
