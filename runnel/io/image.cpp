#include "runnel/io/image.h"

#include "runnel/base/format.h"

namespace runnel::io {

ImageFormat image_format(ByteSpan bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xff\xd8\xff")) return ImageFormat::jpeg;
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (text.starts_with("GIF8")) return ImageFormat::gif;
  if (text.starts_with("BM")) return ImageFormat::bmp;
  if (text.starts_with("RIFF") && text.size() > 12 && text.substr(8).starts_with("WEBP")) return ImageFormat::webp;
  return ImageFormat::unknown;
}

const char* image_format_name(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg: return "JPEG";
    case ImageFormat::png: return "PNG";
    case ImageFormat::gif: return "GIF";
    case ImageFormat::bmp: return "BMP";
    case ImageFormat::webp: return "WebP";
    case ImageFormat::unknown: break;
  }
  return "unknown";
}

void check_image_size(ImageFormat format, const ImageSize& size, int64_t max_pixels) {
  const char* name = image_format_name(format);
  if (size.frames <= 0 || size.height <= 0 || size.width <= 0) {
    throw invalid_argument("{}: an image without pixels: {} frames of {} x {}", name, size.frames, size.width,
                           size.height);
  }
  // Sides are below 2^31 in every format, so the product of two cannot overflow.
  if (size.height * size.width > max_pixels || size.frames > max_pixels / (size.height * size.width)) {
    throw invalid_argument("{}: {} frames of {} x {} are more than the {} pixels allowed", name, size.frames,
                           size.width, size.height, max_pixels);
  }
}

}  // namespace runnel::io
