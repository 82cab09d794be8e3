#include "tests/fuzz/image.h"

// A PNG file, with 8-bit and 16-bit samples: an Error, or every pixel written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  using fuzz::kPixels;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decode([&](io::ImageSink sink) { return io::decode_png(bytes, {.max_pixels = kPixels}, sink); });
  fuzz::decode<uint16_t>([&](io::ImageSink sink) {
    return io::decode_png(bytes, {.channels = 4, .wide = true, .max_pixels = kPixels}, sink);
  });
  return 0;
}
