// GIF 87a and 89a. A first walk over the blocks finds the frames, then each is unpacked and drawn.
#include <algorithm>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/io/image.h"

namespace runnel::io {
namespace {

enum class Disposal : uint8_t { keep, background, previous };

struct Palette {
  const uint8_t* colors = nullptr;
  int count = 0;
};

struct Frame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  Palette palette;
  bool interlaced = false;
  int transparent = -1;  // index of the colour that leaves what is below
  Disposal disposal = Disposal::keep;
  size_t data = 0;  // offset of the code size, the packed indices follow
};

class Reader {
 public:
  explicit Reader(ByteSpan bytes) : data_(reinterpret_cast<const uint8_t*>(bytes.data())), size_(bytes.size()) {}

  size_t at() const { return at_; }
  void seek(size_t at) { at_ = at; }
  bool done() const { return at_ == size_; }
  const uint8_t* take(size_t n) {
    if (n > size_ - at_) throw invalid_argument("GIF: the data ends early, at byte {}", size_);
    at_ += n;
    return data_ + at_ - n;
  }
  int u8() { return *take(1); }
  int u16() {
    const uint8_t* p = take(2);
    return p[0] | p[1] << 8;
  }
  Palette palette(int flags) {
    if ((flags & 0x80) == 0) return {};
    const int count = 2 << (flags & 7);
    return {take(static_cast<size_t>(count) * 3), count};
  }
  void skip_blocks() {
    while (const int n = u8()) take(static_cast<size_t>(n));
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

// Variable-length codes, least significant bit first, from sub-blocks of up to 255 bytes.
class Codes {
 public:
  explicit Codes(Reader& reader) : reader_(reader) {}
  int next(int bits) {  // -1 at the end of the last block
    while (have_ < bits) {
      if (left_ == 0) {
        if (ended_) return -1;
        left_ = reader_.u8();
        if (left_ == 0) {
          ended_ = true;
          return -1;
        }
      }
      hold_ |= static_cast<uint32_t>(reader_.u8()) << have_;
      have_ += 8;
      --left_;
    }
    const int code = static_cast<int>(hold_ & ((1u << bits) - 1));
    hold_ >>= bits;
    have_ -= bits;
    return code;
  }

 private:
  Reader& reader_;
  uint32_t hold_ = 0;
  int have_ = 0;
  int left_ = 0;
  bool ended_ = false;
};

class Gif {
 public:
  explicit Gif(ByteSpan bytes, bool first_only) : reader_(bytes) {
    const uint8_t* magic = reader_.take(6);
    if (std::memcmp(magic, "GIF87a", 6) != 0 && std::memcmp(magic, "GIF89a", 6) != 0) {
      throw invalid_argument("GIF: the file does not begin with GIF87a or GIF89a");
    }
    reader_.take(4);  // the size of the screen: pictures are as large as the largest frame, as TensorFlow reads them
    const int flags = reader_.u8();
    reader_.take(2);  // background colour, pixel ratio
    const Palette global = reader_.palette(flags);
    Frame pending;
    while (!reader_.done() && !(first_only && !frames_.empty())) {
      const size_t at = reader_.at();
      const int kind = reader_.u8();
      if (kind == 0x3B) break;
      if (kind == 0x21) {
        read_extension(pending);
      } else if (kind == 0x2C) {
        read_frame(pending, global);
        pending = {};
      } else {
        throw invalid_argument("GIF: a block of unknown kind {:#04x} at byte {}", kind, at);
      }
    }
    if (frames_.empty()) throw invalid_argument("GIF: the file holds no image");
    for (const Frame& frame : frames_) {
      width_ = std::max(width_, frame.width);
      height_ = std::max(height_, frame.height);
    }
  }

  ImageSize size() const { return {static_cast<int64_t>(frames_.size()), height_, width_, 3}; }

  void draw(uint8_t* out) {
    const size_t bytes = static_cast<size_t>(width_ * height_ * 3);
    std::vector<uint8_t> indices, before;
    for (size_t k = 0; k < frames_.size(); ++k) {
      uint8_t* canvas = out + k * bytes;
      if (k == 0) {
        std::memset(canvas, 0, bytes);
      } else if (frames_[k - 1].disposal == Disposal::previous) {
        std::memcpy(canvas, before.data(), bytes);
      } else {
        std::memcpy(canvas, canvas - bytes, bytes);
        if (frames_[k - 1].disposal == Disposal::background) clear(canvas, frames_[k - 1]);
      }
      if (frames_[k].disposal == Disposal::previous) before.assign(canvas, canvas + bytes);
      unpack(k, indices);
      paint(k, indices, canvas);
    }
  }

 private:
  void read_extension(Frame& pending) {
    const int label = reader_.u8();
    if (label != 0xF9) return reader_.skip_blocks();
    const int n = reader_.u8();
    const uint8_t* p = reader_.take(static_cast<size_t>(n));
    if (n >= 4) {
      const int how = p[0] >> 2 & 7;
      pending.disposal = how == 2 ? Disposal::background : how == 3 ? Disposal::previous : Disposal::keep;
      pending.transparent = (p[0] & 1) != 0 ? p[3] : -1;
    }
    if (n > 0) reader_.skip_blocks();
  }

  void read_frame(Frame frame, const Palette& global) {
    frame.left = reader_.u16();
    frame.top = reader_.u16();
    frame.width = reader_.u16();
    frame.height = reader_.u16();
    const int flags = reader_.u8();
    frame.palette = reader_.palette(flags);
    if (frame.palette.count == 0) frame.palette = global;
    frame.interlaced = (flags & 0x40) != 0;
    frame.data = reader_.at();
    if (frame.palette.count == 0) {
      throw invalid_argument("GIF: frame {} at byte {} has no colours, its own or the file's", frames_.size(),
                             frame.data);
    }
    reader_.u8();
    reader_.skip_blocks();
    frames_.push_back(frame);
  }

  // LZW: a code stands for the string of another code and one more index. The memory grows with the data, whatever size
  // the header claims.
  void unpack(size_t k, std::vector<uint8_t>& out) {
    const Frame& frame = frames_[k];
    const auto pixels = static_cast<size_t>(frame.width * frame.height);
    out.clear();
    reader_.seek(frame.data);
    const int root = reader_.u8();
    if (root < 1 || root > 8) {
      throw invalid_argument("GIF: frame {} has a code size of {} bits at byte {}", k, root, frame.data);
    }
    const int clear_code = 1 << root, end_code = clear_code + 1;
    uint16_t prefix[4096];
    uint8_t suffix[4096], stack[4096];
    for (int i = 0; i < clear_code; ++i) suffix[i] = static_cast<uint8_t>(i);
    int next = end_code + 1, bits = root + 1, last = -1;
    uint8_t first = 0;
    Codes codes(reader_);
    while (out.size() < pixels) {
      int code = codes.next(bits);
      if (code < 0 || code == end_code) {
        throw invalid_argument("GIF: frame {} ends after {} of {} pixels, at byte {}", k, out.size(), pixels,
                               reader_.at());
      }
      if (code == clear_code) {
        next = end_code + 1, bits = root + 1, last = -1;
        continue;
      }
      if (code > next || (last < 0 && code >= clear_code) || (code == next && next >= 4096)) {
        throw invalid_argument("GIF: frame {} holds the code {} before its string at byte {}", k, code, reader_.at());
      }
      const int seen = code;
      int depth = 0;
      if (code == next) {  // the string about to be made: the last one and its own first index
        stack[depth++] = first;
        code = last;
      }
      for (; code > end_code; code = prefix[code]) stack[depth++] = suffix[code];
      first = suffix[code];
      stack[depth++] = first;
      if (last >= 0 && next < 4096) {
        prefix[next] = static_cast<uint16_t>(last);
        suffix[next] = first;
        ++next;
        if (next == 1 << bits && bits < 12) ++bits;
      }
      last = seen;
      while (depth > 0 && out.size() < pixels) out.push_back(stack[--depth]);
    }
  }

  int64_t row_of(const Frame& frame, int64_t i) const {
    if (!frame.interlaced) return i;
    static constexpr int kStart[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
    for (int p = 0; p < 4; ++p) {
      const int64_t rows = (frame.height - kStart[p] + kStep[p] - 1) / kStep[p];
      if (i < rows) return kStart[p] + i * kStep[p];
      i -= std::max<int64_t>(rows, 0);
    }
    return frame.height - 1;
  }

  void paint(size_t k, const std::vector<uint8_t>& indices, uint8_t* canvas) const {
    const Frame& frame = frames_[k];
    const int64_t columns = std::min(frame.width, width_ - frame.left);
    for (int64_t i = 0; i < frame.height; ++i) {
      const int64_t y = frame.top + row_of(frame, i);
      if (y >= height_) continue;
      const uint8_t* from = indices.data() + i * frame.width;
      uint8_t* to = canvas + (y * width_ + frame.left) * 3;
      for (int64_t x = 0; x < columns; ++x) {
        if (from[x] == frame.transparent) continue;
        if (from[x] >= frame.palette.count) {
          throw invalid_argument("GIF: frame {} uses colour {} of {}", k, from[x], frame.palette.count);
        }
        std::memcpy(to + 3 * x, frame.palette.colors + 3 * from[x], 3);
      }
    }
  }

  void clear(uint8_t* canvas, const Frame& frame) const {
    const int64_t columns = std::min(frame.width, width_ - frame.left);
    for (int64_t y = frame.top; columns > 0 && y < std::min(frame.top + frame.height, height_); ++y) {
      std::memset(canvas + (y * width_ + frame.left) * 3, 0, static_cast<size_t>(columns * 3));
    }
  }

  Reader reader_;
  int64_t width_ = 0, height_ = 0;
  std::vector<Frame> frames_;
};

}  // namespace

ImageSize decode_gif(ByteSpan bytes, const GifDecodeOptions& options, ImageSink sink) {
  Gif gif(bytes, options.first_frame_only);
  const ImageSize size = gif.size();
  check_image_size(ImageFormat::gif, size, options.max_pixels);
  gif.draw(static_cast<uint8_t*>(sink(size)));
  return size;
}

}  // namespace runnel::io
