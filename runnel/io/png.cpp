// PNG by libpng. Its errors come back by longjmp, so between a setjmp and the calls it guards stand only objects
// without destructors.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/io/image.h"

namespace runnel::io {
namespace {

struct PngTrap {
  std::jmp_buf jump;
  char text[128] = "";
};

void on_error(png_structp png, png_const_charp text) {
  auto* trap = static_cast<PngTrap*>(png_get_error_ptr(png));
  std::strncpy(trap->text, text, sizeof(trap->text) - 1);
  std::longjmp(trap->jump, 1);
}
void on_warning(png_structp, png_const_charp) {}

class PngDecoder {
 public:
  explicit PngDecoder(ByteSpan bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &trap_, on_error, on_warning);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw make_error(Code::resource_exhausted, "PNG: no memory for the decoder");
    }
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  ImageSize decode(const PngDecodeOptions& o, ImageSink sink) {
    guarded([&] {
      png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
      png_set_read_fn(png_, this, read);
      png_read_info(png_, info_);
    });
    ImageSize size{1, png_get_image_height(png_, info_), png_get_image_width(png_, info_), o.channels};
    check_image_size(ImageFormat::png, size, o.max_pixels);
    const int type = png_get_color_type(png_, info_);
    const bool has_tones = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    if (size.channels == 0) {
      size.channels =
          type == PNG_COLOR_TYPE_PALETTE ? (has_tones ? 4 : 3) : static_cast<int64_t>(png_get_channels(png_, info_));
    }
    int passes = 1;
    size_t row_bytes = 0;
    guarded([&] {
      transform(type, has_tones, size.channels, o.wide);
      passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
      row_bytes = png_get_rowbytes(png_, info_);
    });
    if (row_bytes != static_cast<size_t>(size.width * size.channels) * (o.wide ? 2 : 1)) {
      throw make_error(Code::internal, "PNG: rows of {} bytes for {} pixels of {} channels", row_bytes, size.width,
                       size.channels);
    }
    auto* out = static_cast<png_bytep>(sink(size));
    guarded([&] {
      for (int p = 0; p < passes; ++p) {
        for (int64_t y = 0; y < size.height; ++y) {
          row_ = y;
          png_read_row(png_, out + static_cast<size_t>(y) * row_bytes, nullptr);
        }
      }
      png_read_end(png_, nullptr);
    });
    return size;
  }

 private:
  template <class F>
  void guarded(F f) {
    if (setjmp(trap_.jump)) throw_error();
    f();
  }
  [[noreturn]] void throw_error() const {
    if (ended_) {
      throw invalid_argument("PNG: the data ends early, at byte {}{}", bytes_.size(),
                             row_ < 0 ? std::string() : fmt::format(", in row {}", row_));
    }
    throw invalid_argument("PNG: {} (near byte {} of {})", static_cast<const char*>(trap_.text), at_, bytes_.size());
  }
  static void read(png_structp png, png_bytep to, size_t n) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (n > self->bytes_.size() - self->at_) {
      self->ended_ = true;
      png_error(png, "end of data");
    }
    std::memcpy(to, self->bytes_.data() + self->at_, n);
    self->at_ += n;
  }
  void transform(int type, bool has_tones, int64_t channels, bool wide) {
    const int depth = png_get_bit_depth(png_, info_);
    const bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) != 0;
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (depth == 16 && !wide) png_set_strip_16(png_);
    if (channels % 2 == 0) {
      if (has_tones) png_set_tRNS_to_alpha(png_);
      if (!has_tones && !has_alpha) png_set_add_alpha(png_, 0xffff, PNG_FILLER_AFTER);
    } else if (has_alpha || has_tones) {
      png_set_strip_alpha(png_);
    }
    const bool is_grey = (type & PNG_COLOR_MASK_COLOR) == 0;
    if (channels < 3 && !is_grey) png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    if (channels >= 3 && is_grey) png_set_gray_to_rgb(png_);
    if (wide) {
      if (depth < 16) png_set_expand_16(png_);
      png_set_swap(png_);
    }
  }

  ByteSpan bytes_;
  PngTrap trap_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  size_t at_ = 0;
  int64_t row_ = -1;
  bool ended_ = false;
};

class PngEncoder {
 public:
  PngEncoder() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &trap_, on_error, on_warning);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) {
      png_destroy_write_struct(&png_, nullptr);
      throw make_error(Code::resource_exhausted, "PNG: no memory for the encoder");
    }
  }
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  void encode(const void* pixels, const ImageSize& size, int bits, int compression, std::string& target) {
    if (setjmp(trap_.jump)) throw make_error(Code::internal, "PNG: {}", static_cast<const char*>(trap_.text));
    static constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                     PNG_COLOR_TYPE_RGB_ALPHA};
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    png_set_write_fn(
        png_, &target,
        [](png_structp png, png_bytep data, size_t n) {
          static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), n);
        },
        [](png_structp) {});
    png_set_compression_level(png_, compression);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(size.width), static_cast<png_uint_32>(size.height), bits,
                 kTypes[size.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    if (bits == 16) png_set_swap(png_);
    const int64_t stride = size.width * size.channels * (bits / 8);
    const auto* rows = static_cast<png_const_bytep>(pixels);
    for (int64_t y = 0; y < size.height; ++y) png_write_row(png_, rows + y * stride);
    png_write_end(png_, nullptr);
  }

 private:
  PngTrap trap_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

std::string encode(const void* pixels, const ImageSize& size, int bits, const PngEncodeOptions& o) {
  if (size.channels < 1 || size.channels > 4) {
    throw invalid_argument("PNG: an image of {} channels; 1 to 4 can be encoded", size.channels);
  }
  if (o.compression < -1 || o.compression > 9) {
    throw invalid_argument("PNG: compression must be -1 to 9, got {}", o.compression);
  }
  check_image_size(ImageFormat::png, size, kMaxImagePixels);
  std::string target;
  PngEncoder().encode(pixels, size, bits, o.compression, target);
  return target;
}

}  // namespace

ImageSize decode_png(ByteSpan bytes, const PngDecodeOptions& options, ImageSink sink) {
  if (options.channels < 0 || options.channels > 4) {
    throw invalid_argument("PNG: channels must be 0 to 4, got {}", options.channels);
  }
  return PngDecoder(bytes).decode(options, sink);
}

std::string encode_png(const uint8_t* pixels, const ImageSize& size, const PngEncodeOptions& options) {
  return encode(pixels, size, 8, options);
}
std::string encode_png(const uint16_t* pixels, const ImageSize& size, const PngEncodeOptions& options) {
  return encode(pixels, size, 16, options);
}

}  // namespace runnel::io
