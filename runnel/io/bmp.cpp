// Windows bitmaps without compression: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits of colour.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/io/image.h"

namespace runnel::io {
namespace {

// Where one colour of a pixel stands, as a value of 0 to 255.
struct Mask {
  uint32_t bits = 0;
  int shift = 0;
  uint32_t top = 0;
  explicit Mask(uint32_t m = 0) : bits(m), shift(m ? std::countr_zero(m) : 0), top(m >> shift) {}
  uint8_t of(uint32_t pixel) const {
    return top == 0 ? 0 : static_cast<uint8_t>((uint64_t{(pixel & bits) >> shift} * 255 + top / 2) / top);
  }
};

class Bmp {
 public:
  explicit Bmp(ByteSpan bytes) : p_(reinterpret_cast<const uint8_t*>(bytes.data())), size_(bytes.size()) {
    need(26, "the header");
    if (p_[0] != 'B' || p_[1] != 'M') throw invalid_argument("BMP: the file does not begin with BM");
    pixels_ = u32(10);
    const uint32_t header = u32(14);
    if (header == 12) {
      width_ = u16(18), height_ = u16(20), bits_ = u16(24);
    } else {
      if (header < 40 || header > 4096) throw invalid_argument("BMP: a header of {} bytes at byte 14", header);
      need(54, "the header");
      width_ = static_cast<int32_t>(u32(18)), height_ = static_cast<int32_t>(u32(22)), bits_ = u16(28);
      compression_ = u32(30);
      colors_ = u32(46);
    }
    top_down_ = height_ < 0;
    height_ = std::abs(height_);
    if (width_ <= 0 || height_ <= 0) throw invalid_argument("BMP: an image of {} x {} at byte 18", width_, height_);
    if (compression_ != 0 && compression_ != 3 && compression_ != 6) {
      throw make_error(Code::unimplemented,
                       "BMP: compression {} at byte 30 is not supported: save it uncompressed or as PNG", compression_);
    }
    read_masks(header);
    palette_at_ = 14 + size_t{header};
    palette_step_ = header == 12 ? 3 : 4;
    if (bits_ <= 8) read_palette();
    stride_ = (static_cast<uint64_t>(width_) * static_cast<uint64_t>(bits_) + 31) / 32 * 4;
  }

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int channels() const { return bits_ <= 8 ? (grey_ ? 1 : 3) : alpha_.bits != 0 ? 4 : 3; }

  void check_data() const {
    const uint64_t last = (static_cast<uint64_t>(width_) * static_cast<uint64_t>(bits_) + 7) / 8;
    const uint64_t end = pixels_ + stride_ * static_cast<uint64_t>(height_ - 1) + last;
    if (end > size_) {
      throw invalid_argument("BMP: the data ends early, at byte {}: {} x {} pixels of {} bits from byte {} need {}",
                             size_, width_, height_, bits_, pixels_, end);
    }
  }

  void decode(int channels, uint8_t* out) const {
    for (int64_t y = 0; y < height_; ++y) {
      const int64_t row = top_down_ ? y : height_ - 1 - y;
      const uint8_t* from = p_ + pixels_ + stride_ * static_cast<uint64_t>(row);
      uint8_t* to = out + y * width_ * channels;
      for (int64_t x = 0; x < width_; ++x, to += channels) {
        uint8_t rgba[4];
        pixel(from, x, rgba);
        if (channels == 1) {
          *to = rgba[0] == rgba[1] && rgba[1] == rgba[2]
                    ? rgba[0]
                    : static_cast<uint8_t>((rgba[0] * 299 + rgba[1] * 587 + rgba[2] * 114 + 500) / 1000);
        } else {
          std::memcpy(to, rgba, static_cast<size_t>(channels));
        }
      }
    }
  }

 private:
  void need(size_t n, const char* what) const {
    if (size_ < n) throw invalid_argument("BMP: the data ends early, at byte {}, inside {}", size_, what);
  }
  uint32_t u16(size_t at) const { return static_cast<uint32_t>(p_[at] | p_[at + 1] << 8); }
  uint32_t u32(size_t at) const { return u16(at) | u16(at + 2) << 16; }

  void read_masks(uint32_t header) {
    switch (bits_) {
      case 1:
      case 4:
      case 8:
      case 24: return;
      case 16: red_ = Mask(0x7c00), green_ = Mask(0x3e0), blue_ = Mask(0x1f); break;
      case 32:
        red_ = Mask(0xff0000), green_ = Mask(0xff00), blue_ = Mask(0xff);
        alpha_ = Mask(0xff000000);
        break;
      default: throw invalid_argument("BMP: {} bits per pixel at byte 28", bits_);
    }
    if (compression_ == 0) return;
    need(66, "the colour masks");
    red_ = Mask(u32(54)), green_ = Mask(u32(58)), blue_ = Mask(u32(62)), alpha_ = Mask(0);
    if (header >= 56 || compression_ == 6) {
      need(70, "the colour masks");
      alpha_ = Mask(u32(66));
    }
  }

  void read_palette() {
    const size_t most = size_t{1} << bits_;
    if (colors_ == 0 || colors_ > most) colors_ = static_cast<uint32_t>(most);
    if (pixels_ > palette_at_) colors_ = std::min<uint32_t>(colors_, (pixels_ - palette_at_) / palette_step_);
    need(palette_at_ + colors_ * palette_step_, "the palette");
    for (uint32_t i = 0; i < colors_; ++i) {
      const uint8_t* c = p_ + palette_at_ + i * palette_step_;
      grey_ = grey_ && c[0] == c[1] && c[1] == c[2];
    }
  }

  void pixel(const uint8_t* row, int64_t x, uint8_t* rgba) const {
    rgba[3] = 255;
    if (bits_ <= 8) {
      const int per_byte = 8 / static_cast<int>(bits_);
      const int shift = 8 - static_cast<int>(bits_) * static_cast<int>(x % per_byte + 1);
      const uint32_t index = static_cast<uint32_t>(row[x / per_byte] >> shift) & ((1u << bits_) - 1);
      if (index >= colors_) {
        throw invalid_argument("BMP: colour {} of a palette of {}, in column {}", index, colors_, x);
      }
      const uint8_t* c = p_ + palette_at_ + index * palette_step_;
      rgba[0] = c[2], rgba[1] = c[1], rgba[2] = c[0];
    } else if (bits_ == 24) {
      const uint8_t* c = row + 3 * x;
      rgba[0] = c[2], rgba[1] = c[1], rgba[2] = c[0];
    } else {
      const uint8_t* c = row + x * static_cast<int64_t>(bits_ / 8);
      uint32_t v = static_cast<uint32_t>(c[0] | c[1] << 8);
      if (bits_ == 32) v |= static_cast<uint32_t>(c[2] | c[3] << 8) << 16;
      rgba[0] = red_.of(v), rgba[1] = green_.of(v), rgba[2] = blue_.of(v);
      if (alpha_.bits != 0) rgba[3] = alpha_.of(v);
    }
  }

  const uint8_t* p_;
  size_t size_;
  uint64_t pixels_ = 0, stride_ = 0;
  int64_t width_ = 0, height_ = 0;
  uint32_t bits_ = 0, compression_ = 0, colors_ = 0;
  size_t palette_at_ = 0, palette_step_ = 4;
  bool top_down_ = false, grey_ = true;
  Mask red_, green_, blue_, alpha_;
};

}  // namespace

ImageSize decode_bmp(ByteSpan bytes, const BmpDecodeOptions& options, ImageSink sink) {
  if (options.channels < 0 || options.channels > 4 || options.channels == 2) {
    throw invalid_argument("BMP: channels must be 0, 1, 3 or 4, got {}", options.channels);
  }
  const Bmp bmp(bytes);
  const int channels = options.channels != 0 ? options.channels : bmp.channels();
  const ImageSize size{1, bmp.height(), bmp.width(), channels};
  check_image_size(ImageFormat::bmp, size, options.max_pixels);
  bmp.check_data();
  bmp.decode(channels, static_cast<uint8_t*>(sink(size)));
  return size;
}

}  // namespace runnel::io
