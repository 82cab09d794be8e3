#include "runnel/io/npz.h"

#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"

namespace {

void check(const runnel::io::NpyArray& array) {
  uint64_t expected = runnel::io::npy_dtype_size(array.dtype);
  for (int64_t dim : array.shape) expected *= static_cast<uint64_t>(dim);
  if (expected != array.data.size()) std::abort();
  const auto again = runnel::io::parse_npy(runnel::io::npy({array.dtype, array.shape, array.data}), "again");
  if (again.dtype != array.dtype || again.shape != array.shape || again.data != array.data) std::abort();
}

}  // namespace

// A .npy or .npz file: an Error, or arrays whose shapes multiply to exactly the data and that survive writing.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    if (size > 0 && data[0] == 0x93) {
      check(io::parse_npy(bytes, "fuzz"));
    } else {
      for (const io::NamedArray& each : io::parse_npz(bytes, "fuzz", 1 << 22)) check(each.array);
    }
  } catch (const Error&) {
  }
  return 0;
}
