#include "tests/fuzz/image.h"

// A JPEG file, whole and as much as there is of it: an Error, or every pixel written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  using fuzz::kPixels;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decode([&](io::ImageSink sink) { return io::decode_jpeg(bytes, {.max_pixels = kPixels}, sink); });
  fuzz::decode([&](io::ImageSink sink) {
    return io::decode_jpeg(
        bytes,
        {.channels = 1, .ratio = 2, .try_recover_truncated = true, .acceptable_fraction = 0, .max_pixels = kPixels},
        sink);
  });
  return 0;
}
