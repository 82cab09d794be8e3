#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"
#include "runnel/io/gzip.h"
#include "runnel/io/idx.h"

// An idx file, plain or compressed: either an Error, or dimensions that multiply to exactly the data.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    std::vector<std::byte> plain;
    if (io::is_gzip(bytes)) {
      plain = io::gunzip(bytes, "fuzz", 1 << 20);
      bytes = plain;
    }
    io::IdxView view = io::parse_idx(bytes, "fuzz");
    uint64_t expected = io::idx_type_size(view.type);
    for (int64_t dim : view.dims) expected *= static_cast<uint64_t>(dim);
    if (expected != view.data.size()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
