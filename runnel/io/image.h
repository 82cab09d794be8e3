#pragma once

// Image files: what bytes hold, and pixels from and to them. No tensors here: a decoder asks for memory once, when it
// knows the size, and writes rows straight into it.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"

namespace runnel::io {

enum class ImageFormat : uint8_t { unknown, jpeg, png, gif, bmp, webp };

RUNNEL_API ImageFormat image_format(ByteSpan bytes);           // by the first bytes
RUNNEL_API const char* image_format_name(ImageFormat format);  // "JPEG"

// Pixels as decoders write and encoders read them: row-major, channels last, top row first.
struct ImageSize {
  int64_t frames = 1;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t samples() const { return frames * height * width * channels; }
};

// Called once, before any pixel is written; gives memory for size.samples() samples of the asked width. What it throws
// passes through.
using ImageSink = FunctionRef<void*(const ImageSize& size)>;

// A larger image is refused before memory for it is asked for (all frames together).
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 29;

struct JpegDecodeOptions {
  int channels = 0;  // 1 grey, 3 RGB, 0 as in the file (CMYK becomes RGB)
  int ratio = 1;     // 2, 4 or 8: each side divided by it while decoding
  // When positive: the largest ratio that leaves at least these sides, in place of `ratio`.
  int64_t min_height = 0, min_width = 0;
  bool fancy_upscaling = true;         // of the colour planes: smooth rather than repeated
  bool fast_dct = true;                // less exact by one or two of 255 at times, as TensorFlow has it
  bool try_recover_truncated = false;  // grey or smeared lines in place of an error where the data ends early
  double acceptable_fraction = 1;      // the share of lines that must be there for that
  bool crop = false;                   // only the window below, in pixels of the result of `ratio`
  int64_t crop_y = 0, crop_x = 0, crop_height = 0, crop_width = 0;
  int64_t max_pixels = kMaxImagePixels;
};
RUNNEL_API ImageSize decode_jpeg(ByteSpan bytes, const JpegDecodeOptions& options, ImageSink sink);
RUNNEL_API ImageSize jpeg_size(ByteSpan bytes);  // of the header alone

struct PngDecodeOptions {
  int channels = 0;   // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha, 0 as in the file (palettes become RGB)
  bool wide = false;  // 16-bit samples (8-bit files: v * 257); else 16-bit files lose their low byte
  int64_t max_pixels = kMaxImagePixels;
};
RUNNEL_API ImageSize decode_png(ByteSpan bytes, const PngDecodeOptions& options, ImageSink sink);

struct GifDecodeOptions {
  bool first_frame_only = false;
  int64_t max_pixels = kMaxImagePixels;
};
// Every frame as it is seen, RGB: frames are drawn over what was there, disposed of as they ask; what no frame covers
// is black.
RUNNEL_API ImageSize decode_gif(ByteSpan bytes, const GifDecodeOptions& options, ImageSink sink);

struct BmpDecodeOptions {
  int channels = 0;  // 1, 3, 4, or 0 as in the file (a palette of greys is one channel, of colours three)
  int64_t max_pixels = kMaxImagePixels;
};
RUNNEL_API ImageSize decode_bmp(ByteSpan bytes, const BmpDecodeOptions& options, ImageSink sink);

struct WebpDecodeOptions {
  int channels = 0;  // 3, 4, or 0 as in the file (animations have 4)
  bool first_frame_only = false;
  int64_t max_pixels = kMaxImagePixels;
};
RUNNEL_API ImageSize decode_webp(ByteSpan bytes, const WebpDecodeOptions& options, ImageSink sink);

struct JpegEncodeOptions {
  int quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  std::string density_unit = "in";  // or "cm"
  int x_density = 300;
  int y_density = 300;
  std::string_view xmp_metadata = {};
};
// One frame of 1 or 3 channels.
RUNNEL_API std::string encode_jpeg(const uint8_t* pixels, const ImageSize& size, const JpegEncodeOptions& options);

struct PngEncodeOptions {
  int compression = -1;  // 0 to 9 as in zlib; -1 its default
};
// One frame of 1 to 4 channels, of 8-bit or 16-bit samples.
RUNNEL_API std::string encode_png(const uint8_t* pixels, const ImageSize& size, const PngEncodeOptions& options);
RUNNEL_API std::string encode_png(const uint16_t* pixels, const ImageSize& size, const PngEncodeOptions& options);

// Throws when width x height x frames is zero or above max_pixels.
void check_image_size(ImageFormat format, const ImageSize& size, int64_t max_pixels);

}  // namespace runnel::io
