// JPEG by libjpeg-turbo. Its errors come back by longjmp, so between a setjmp and the calls it guards stand only
// objects without destructors.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
// jpeglib.h wants size_t and FILE first.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/image.h"

namespace runnel::io {
namespace {

constexpr int kMaxScans = 500;  // honest files have about ten; each scan costs a pass over the image
constexpr JOCTET kEndOfImage[2] = {0xFF, JPEG_EOI};

struct Trap {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr c) {
  Trap* trap = reinterpret_cast<Trap*>(c->err);
  c->err->format_message(c, trap->text);
  std::longjmp(trap->jump, 1);
}

void init_trap(Trap& trap) {
  jpeg_std_error(&trap.base);
  trap.base.error_exit = on_error;
  trap.base.output_message = [](j_common_ptr) {};
  trap.base.emit_message = [](j_common_ptr c, int level) {
    if (level < 0) ++c->err->num_warnings;
  };
  trap.text[0] = 0;
}

// All bytes at once; nothing can follow them.
struct Source {
  jpeg_source_mgr base;
  size_t size;
  bool recover;
  bool ended;        // ran out of bytes
  JDIMENSION lines;  // finished by then
};

boolean on_empty(j_decompress_ptr c) {
  auto* source = reinterpret_cast<Source*>(c->src);
  if (!source->recover) ERREXIT(c, JERR_INPUT_EOF);
  if (!source->ended) source->lines = c->output_scanline;
  source->ended = true;
  source->base.next_input_byte = kEndOfImage;
  source->base.bytes_in_buffer = sizeof(kEndOfImage);
  return TRUE;
}

void skip_bytes(j_decompress_ptr c, long n) {
  if (n <= 0) return;
  auto* source = reinterpret_cast<Source*>(c->src);
  if (static_cast<size_t>(n) > source->base.bytes_in_buffer) {
    source->base.bytes_in_buffer = 0;
    on_empty(c);
    return;
  }
  source->base.next_input_byte += n;
  source->base.bytes_in_buffer -= static_cast<size_t>(n);
}

void on_progress(j_common_ptr c) {
  if (c->is_decompressor && reinterpret_cast<j_decompress_ptr>(c)->input_scan_number > kMaxScans) {
    ERREXIT(c, JERR_BAD_PROGRESSION);
  }
}

class Decoder {
 public:
  Decoder(ByteSpan bytes, bool recover) : bytes_(bytes) {
    init_trap(trap_);
    c_.err = &trap_.base;
    guarded([&] {
      jpeg_create_decompress(&c_);
      source_.base.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
      source_.base.bytes_in_buffer = bytes.size();
      source_.base.init_source = [](j_decompress_ptr) {};
      source_.base.fill_input_buffer = on_empty;
      source_.base.skip_input_data = skip_bytes;
      source_.base.resync_to_restart = jpeg_resync_to_restart;
      source_.base.term_source = [](j_decompress_ptr) {};
      source_.size = bytes.size();
      source_.recover = recover;
      c_.src = &source_.base;
      progress_.progress_monitor = on_progress;
      c_.progress = &progress_;
    });
    try {
      guarded([&] { jpeg_read_header(&c_, TRUE); });
    } catch (...) {
      jpeg_destroy_decompress(&c_);
      throw;
    }
  }
  ~Decoder() { jpeg_destroy_decompress(&c_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const jpeg_decompress_struct& header() const { return c_; }
  ImageSize decode(const JpegDecodeOptions& o, ImageSink sink);

 private:
  // f may call the library and must not own anything.
  template <class F>
  void guarded(F f) {
    if (setjmp(trap_.jump)) throw_error();
    f();
  }
  [[noreturn]] void throw_error() const;
  bool is_cmyk() const { return c_.jpeg_color_space == JCS_CMYK || c_.jpeg_color_space == JCS_YCCK; }
  void choose_scale(const JpegDecodeOptions& o);
  void read_lines(uint8_t* out, int64_t first, int64_t count, int64_t left, int64_t width, int channels, uint8_t* line);
  void cmyk_to_rgb(const uint8_t* from, uint8_t* to, int64_t n) const;

  ByteSpan bytes_;
  jpeg_decompress_struct c_{};
  Trap trap_;
  Source source_{};
  jpeg_progress_mgr progress_{};
};

void Decoder::throw_error() const {
  const size_t at = bytes_.size() - std::min(bytes_.size(), source_.base.bytes_in_buffer);
  if (trap_.base.msg_code == JERR_INPUT_EOF) {
    if (c_.output_height > 0 && c_.output_scanline > 0) {
      throw invalid_argument(
          "JPEG: the data ends early, at byte {}, after {} of {} lines; try_recover_truncated decodes what is there",
          bytes_.size(), c_.output_scanline, c_.output_height);
    }
    throw invalid_argument("JPEG: the data ends early, at byte {}", bytes_.size());
  }
  throw invalid_argument("JPEG: {} (near byte {} of {})", trap_.text, at, bytes_.size());
}

void Decoder::choose_scale(const JpegDecodeOptions& o) {
  int ratio = o.ratio;
  if (o.min_height > 0 && o.min_width > 0) {
    ratio = 1;
    const auto fits = [&](int r) {
      return (c_.image_height + r - 1) / r >= o.min_height && (c_.image_width + r - 1) / r >= o.min_width;
    };
    while (ratio < 8 && fits(ratio * 2)) ratio *= 2;
  }
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    throw invalid_argument("ratio must be 1, 2, 4 or 8, got {}", ratio);
  }
  c_.scale_num = 1;
  c_.scale_denom = static_cast<unsigned>(ratio);
}

void Decoder::cmyk_to_rgb(const uint8_t* from, uint8_t* to, int64_t n) const {
  for (int64_t i = 0; i < n; ++i) {
    const int k = from[4 * i + 3];
    for (int j = 0; j < 3; ++j) {
      const int ink = from[4 * i + j];  // Adobe's files hold light, not ink
      to[3 * i + j] = static_cast<uint8_t>(c_.saw_Adobe_marker ? k * ink / 255 : (255 - k) * (255 - ink) / 255);
    }
  }
}

// Lines [first, first + count), of each `width` pixels from `left`. `line` holds one whole line where rows cannot go
// straight to their place.
void Decoder::read_lines(uint8_t* out, int64_t first, int64_t count, int64_t left, int64_t width, int channels,
                         uint8_t* line) {
  guarded([&] {
    const int64_t stride = width * channels;
    int64_t done = 0;
    if (line == nullptr) {
      JSAMPROW rows[16];
      while (done < count) {
        const int64_t n = std::min<int64_t>(count - done, 16);
        for (int64_t i = 0; i < n; ++i) rows[i] = out + (done + i) * stride;
        done += jpeg_read_scanlines(&c_, rows, static_cast<JDIMENSION>(n));
      }
      return;
    }
    JSAMPROW rows[1] = {line};
    while (static_cast<int64_t>(c_.output_scanline) < first) jpeg_read_scanlines(&c_, rows, 1);
    for (; done < count; ++done) {
      jpeg_read_scanlines(&c_, rows, 1);
      if (c_.out_color_space == JCS_CMYK) {
        cmyk_to_rgb(line + left * 4, out + done * stride, width);
      } else {
        std::memcpy(out + done * stride, line + left * channels, static_cast<size_t>(stride));
      }
    }
  });
}

ImageSize Decoder::decode(const JpegDecodeOptions& o, ImageSink sink) {
  if (o.channels != 0 && o.channels != 1 && o.channels != 3) {
    throw invalid_argument("JPEG: channels must be 0, 1 or 3, got {}", o.channels);
  }
  const int channels = o.channels != 0 ? o.channels : std::min(c_.num_components, 3);
  if (channels == 2) throw invalid_argument("JPEG: files of two components are not supported");
  check_image_size(ImageFormat::jpeg, {1, c_.image_height, c_.image_width, channels}, o.max_pixels);
  choose_scale(o);
  c_.out_color_space = channels == 1 ? JCS_GRAYSCALE : is_cmyk() ? JCS_CMYK : JCS_RGB;
  c_.do_fancy_upsampling = o.fancy_upscaling ? TRUE : FALSE;
  c_.dct_method = o.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  guarded([&] { jpeg_start_decompress(&c_); });

  ImageSize size{1, c_.output_height, c_.output_width, channels};
  int64_t top = 0, left = 0;
  if (o.crop) {
    const bool fits = o.crop_y >= 0 && o.crop_x >= 0 && o.crop_height > 0 && o.crop_width > 0 &&
                      o.crop_height <= size.height - o.crop_y && o.crop_width <= size.width - o.crop_x;
    if (!fits) {
      throw invalid_argument("JPEG: the window at row {}, column {} of {} x {} pixels is not inside {} x {}", o.crop_y,
                             o.crop_x, o.crop_width, o.crop_height, size.width, size.height);
    }
    top = o.crop_y, left = o.crop_x, size.height = o.crop_height, size.width = o.crop_width;
  }
  auto* out = static_cast<uint8_t*>(sink(size));
  std::vector<uint8_t> line;
  if (o.crop || c_.out_color_space == JCS_CMYK) {
    line.resize(static_cast<size_t>(c_.output_width) * static_cast<size_t>(c_.output_components));
  }
  read_lines(out, top, size.height, left, size.width, channels, line.empty() ? nullptr : line.data());
  if (source_.ended && source_.lines < o.acceptable_fraction * c_.output_height) {
    throw invalid_argument("JPEG: the data ends early, at byte {}, after {} of {} lines; acceptable_fraction is {}",
                           bytes_.size(), source_.lines, c_.output_height, o.acceptable_fraction);
  }
  return size;
}

// The bytes of a finished file; the library grows them with malloc.
struct Target {
  unsigned char* data = nullptr;
  unsigned long size = 0;
  ~Target() { std::free(data); }
};

class Encoder {
 public:
  Encoder() {
    init_trap(trap_);
    c_.err = &trap_.base;
    guarded([&] { jpeg_create_compress(&c_); });
  }
  ~Encoder() { jpeg_destroy_compress(&c_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  void encode(const uint8_t* pixels, const ImageSize& size, const JpegEncodeOptions& o, std::string_view xmp,
              Target& target) {
    guarded([&] {
      jpeg_mem_dest(&c_, &target.data, &target.size);
      c_.image_width = static_cast<JDIMENSION>(size.width);
      c_.image_height = static_cast<JDIMENSION>(size.height);
      c_.input_components = static_cast<int>(size.channels);
      c_.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      jpeg_set_defaults(&c_);
      jpeg_set_quality(&c_, o.quality, TRUE);
      if (o.progressive) jpeg_simple_progression(&c_);
      c_.optimize_coding = o.optimize_size ? TRUE : FALSE;
      if (!o.chroma_downsampling && size.channels == 3) {
        for (int i = 0; i < 3; ++i) c_.comp_info[i].h_samp_factor = c_.comp_info[i].v_samp_factor = 1;
      }
      c_.density_unit = o.density_unit == "cm" ? 2 : 1;
      c_.X_density = static_cast<UINT16>(o.x_density);
      c_.Y_density = static_cast<UINT16>(o.y_density);
      jpeg_start_compress(&c_, TRUE);
      if (!xmp.empty()) {
        jpeg_write_marker(&c_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(xmp.data()),
                          static_cast<unsigned>(xmp.size()));
      }
      const int64_t stride = size.width * size.channels;
      while (c_.next_scanline < c_.image_height) {
        auto* row = const_cast<JSAMPROW>(pixels + c_.next_scanline * stride);
        jpeg_write_scanlines(&c_, &row, 1);
      }
      jpeg_finish_compress(&c_);
    });
  }

 private:
  template <class F>
  void guarded(F f) {
    if (setjmp(trap_.jump)) throw make_error(Code::internal, "JPEG: {}", static_cast<const char*>(trap_.text));
    f();
  }
  jpeg_compress_struct c_{};
  Trap trap_;
};

}  // namespace

ImageSize decode_jpeg(ByteSpan bytes, const JpegDecodeOptions& options, ImageSink sink) {
  Decoder decoder(bytes, options.try_recover_truncated);
  return decoder.decode(options, sink);
}

ImageSize jpeg_size(ByteSpan bytes) {
  const Decoder decoder(bytes, false);
  const jpeg_decompress_struct& c = decoder.header();
  return {1, c.image_height, c.image_width, c.num_components};
}

std::string encode_jpeg(const uint8_t* pixels, const ImageSize& size, const JpegEncodeOptions& o) {
  if (size.channels != 1 && size.channels != 3) {
    throw invalid_argument("JPEG: an image of {} channels; 1 (grey) and 3 (RGB) can be encoded", size.channels);
  }
  if (size.height < 1 || size.width < 1 || size.height > JPEG_MAX_DIMENSION || size.width > JPEG_MAX_DIMENSION) {
    throw invalid_argument("JPEG: an image of {} x {}; sides may be 1 to {}", size.width, size.height,
                           JPEG_MAX_DIMENSION);
  }
  if (o.quality < 0 || o.quality > 100) throw invalid_argument("JPEG: quality must be 0 to 100, got {}", o.quality);
  if (o.density_unit != "in" && o.density_unit != "cm") {
    throw invalid_argument("JPEG: density_unit must be 'in' or 'cm', got '{}'", o.density_unit);
  }
  std::string xmp;
  if (!o.xmp_metadata.empty()) {
    using namespace std::string_view_literals;
    xmp = "http://ns.adobe.com/xap/1.0/\0"sv;
    xmp += o.xmp_metadata;
    if (xmp.size() > 65533) throw invalid_argument("JPEG: xmp_metadata of {} bytes", o.xmp_metadata.size());
  }
  Target target;
  Encoder encoder;
  encoder.encode(pixels, size, o, xmp, target);
  return std::string(reinterpret_cast<const char*>(target.data), target.size);
}

}  // namespace runnel::io
