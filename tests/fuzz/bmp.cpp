#include "tests/fuzz/image.h"

// A BMP file, with its own number of channels and with four: an Error, or every pixel written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  using fuzz::kPixels;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decode([&](io::ImageSink sink) { return io::decode_bmp(bytes, {.max_pixels = kPixels}, sink); });
  fuzz::decode([&](io::ImageSink sink) { return io::decode_bmp(bytes, {.channels = 4, .max_pixels = kPixels}, sink); });
  return 0;
}
