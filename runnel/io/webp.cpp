// WebP by libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/io/image.h"

namespace runnel::io {
namespace {

const char* status_text(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA: return "the data ends early";
    case VP8_STATUS_OUT_OF_MEMORY: return "no memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "a feature that is not supported";
    case VP8_STATUS_BITSTREAM_ERROR: return "damaged data";
    default: return "not decodable";
  }
}

[[noreturn]] void fail(VP8StatusCode status, size_t size) {
  throw invalid_argument("WebP: {} (in {} bytes)", status_text(status), size);
}

ImageSize decode_still(const uint8_t* data, size_t bytes, const ImageSize& size, ImageSink sink) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) throw make_error(Code::internal, "WebP: another version of libwebp is loaded");
  config.output.colorspace = size.channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = static_cast<uint8_t*>(sink(size));
  config.output.u.RGBA.stride = static_cast<int>(size.width * size.channels);
  config.output.u.RGBA.size = static_cast<size_t>(size.samples());
  const VP8StatusCode status = WebPDecode(data, bytes, &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) fail(status, bytes);
  return size;
}

ImageSize decode_animation(const uint8_t* data, size_t bytes, const WebpDecodeOptions& o, ImageSink sink) {
  WebPAnimDecoderOptions options;
  if (!WebPAnimDecoderOptionsInit(&options)) {
    throw make_error(Code::internal, "WebP: another version of libwebpdemux is loaded");
  }
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const WebPData all{data, bytes};
  // The canvas is checked before the decoder makes one.
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(WebPDemux(&all), WebPDemuxDelete);
  if (!demuxer) throw invalid_argument("WebP: the animation is damaged or ends early (in {} bytes)", bytes);
  const int64_t frames = WebPDemuxGetI(demuxer.get(), WEBP_FF_FRAME_COUNT);
  const ImageSize size{o.first_frame_only ? std::min<int64_t>(frames, 1) : frames,
                       WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT),
                       WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH), o.channels == 3 ? 3 : 4};
  check_image_size(ImageFormat::webp, size, o.max_pixels);
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(WebPAnimDecoderNew(&all, &options),
                                                                             WebPAnimDecoderDelete);
  if (!decoder) throw invalid_argument("WebP: the animation is damaged (in {} bytes)", bytes);
  auto* out = static_cast<uint8_t*>(sink(size));
  const int64_t pixels = size.height * size.width;
  for (int64_t k = 0; k < size.frames; ++k) {
    uint8_t* canvas = nullptr;
    int timestamp = 0;
    if (!WebPAnimDecoderGetNext(decoder.get(), &canvas, &timestamp)) {
      throw invalid_argument("WebP: frame {} of {} is damaged or ends early (in {} bytes)", k, frames, bytes);
    }
    uint8_t* to = out + k * pixels * size.channels;
    if (size.channels == 4) {
      std::memcpy(to, canvas, static_cast<size_t>(pixels) * 4);
    } else {
      for (int64_t i = 0; i < pixels; ++i) std::memcpy(to + 3 * i, canvas + 4 * i, 3);
    }
  }
  return size;
}

}  // namespace

ImageSize decode_webp(ByteSpan bytes, const WebpDecodeOptions& options, ImageSink sink) {
  if (options.channels != 0 && options.channels != 3 && options.channels != 4) {
    throw invalid_argument("WebP: channels must be 0, 3 or 4, got {}", options.channels);
  }
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(data, bytes.size(), &features);
  if (status != VP8_STATUS_OK) fail(status, bytes.size());
  if (features.has_animation) return decode_animation(data, bytes.size(), options, sink);
  const int channels = options.channels != 0 ? options.channels : features.has_alpha ? 4 : 3;
  const ImageSize size{1, features.height, features.width, channels};
  check_image_size(ImageFormat::webp, size, options.max_pixels);
  return decode_still(data, bytes.size(), size, sink);
}

}  // namespace runnel::io
