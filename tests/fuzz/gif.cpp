#include "tests/fuzz/image.h"

// A GIF file, all frames and the first: an Error, or every pixel written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  using fuzz::kPixels;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decode([&](io::ImageSink sink) { return io::decode_gif(bytes, {.max_pixels = kPixels}, sink); });
  fuzz::decode([&](io::ImageSink sink) {
    return io::decode_gif(bytes, {.first_frame_only = true, .max_pixels = kPixels}, sink);
  });
  return 0;
}
