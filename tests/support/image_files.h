#pragma once

// Image files written by hand, so that decoders meet what no encoder here writes. Bytes are appended as they stand in
// the formats' specifications.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace runnel::test {

inline void put_le(std::string& s, uint32_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(v >> (8 * i));
}
inline void put_be(std::string& s, uint32_t v, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) s += static_cast<char>(v >> (8 * i));
}

// --- PNG: stored (not compressed) data ---

inline uint32_t crc32_of(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int k = 0; k < 8; ++k) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

inline std::string png_chunk(std::string_view type, std::string_view data) {
  std::string body(type);
  body += data;
  std::string s;
  put_be(s, static_cast<uint32_t>(data.size()), 4);
  s += body;
  put_be(s, crc32_of(body), 4);
  return s;
}

inline std::string zlib_stored(std::string_view data) {
  std::string s = "\x78\x01";
  uint32_t a = 1, b = 0;
  for (char c : data) a = (a + static_cast<uint8_t>(c)) % 65521, b = (b + a) % 65521;
  size_t at = 0;
  do {
    const size_t n = std::min<size_t>(65535, data.size() - at);
    s += static_cast<char>(at + n == data.size() ? 1 : 0);
    put_le(s, static_cast<uint32_t>(n), 2);
    put_le(s, ~static_cast<uint32_t>(n), 2);
    s += data.substr(at, n);
    at += n;
  } while (at < data.size());
  put_be(s, b << 16 | a, 4);
  return s;
}

struct PngSpec {
  uint32_t width, height;
  int bits;   // per sample
  int color;  // 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
  bool interlaced = false;
  std::string chunks;  // between IHDR and IDAT: png_chunk("PLTE", ...)
};
// sample(x, y, channel) gives the raw samples.
inline std::string png_file(const PngSpec& p, const std::function<uint32_t(uint32_t, uint32_t, int)>& sample) {
  const int channels = std::array{1, 0, 3, 1, 2, 0, 4}[static_cast<size_t>(p.color)];
  std::string data;
  const auto lines = [&](uint32_t x0, uint32_t dx, uint32_t y0, uint32_t dy) {
    for (uint32_t y = y0; y < p.height && x0 < p.width; y += dy) {
      data += '\0';  // no filter
      uint32_t hold = 0;
      int have = 0;
      for (uint32_t x = x0; x < p.width; x += dx) {
        for (int c = 0; c < channels; ++c) {
          hold = hold << p.bits | sample(x, y, c), have += p.bits;
          while (have >= 8) data += static_cast<char>(hold >> (have - 8)), have -= 8;
        }
      }
      if (have > 0) data += static_cast<char>(hold << (8 - have));
    }
  };
  if (p.interlaced) {
    lines(0, 8, 0, 8), lines(4, 8, 0, 8), lines(0, 4, 4, 8), lines(2, 4, 0, 4), lines(0, 2, 2, 4), lines(1, 2, 0, 2);
    lines(0, 1, 1, 2);
  } else {
    lines(0, 1, 0, 1);
  }
  std::string header;
  put_be(header, p.width, 4);
  put_be(header, p.height, 4);
  header += static_cast<char>(p.bits);
  header += static_cast<char>(p.color);
  header += std::string_view("\0\0", 2);
  header += static_cast<char>(p.interlaced ? 1 : 0);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + p.chunks + png_chunk("IDAT", zlib_stored(data)) +
         png_chunk("IEND", "");
}

// --- GIF ---

inline std::string lzw(const std::vector<uint8_t>& indices, int root) {
  std::string bytes;
  uint32_t hold = 0;
  int have = 0, bits = root + 1;
  const auto emit = [&](int code) {
    hold |= static_cast<uint32_t>(code) << have, have += bits;
    while (have >= 8) bytes += static_cast<char>(hold), hold >>= 8, have -= 8;
  };
  std::map<std::string, int> table;
  int next = 0;
  const auto reset = [&] {
    table.clear();
    for (int i = 0; i < 1 << root; ++i) table[std::string(1, static_cast<char>(i))] = i;
    next = (1 << root) + 2, bits = root + 1;
  };
  reset();
  emit(1 << root);
  std::string run;
  for (uint8_t i : indices) {
    const std::string longer = run + static_cast<char>(i);
    if (table.contains(longer)) {
      run = longer;
      continue;
    }
    emit(table[run]);
    if (next < 4096) {
      table[longer] = next++;
      if (next == (1 << bits) + 1 && bits < 12) ++bits;
    } else {
      emit(1 << root);
      reset();
    }
    run = std::string(1, static_cast<char>(i));
  }
  if (!run.empty()) emit(table[run]);
  emit((1 << root) + 1);
  if (have > 0) bytes += static_cast<char>(hold);
  std::string blocks(1, static_cast<char>(root));
  for (size_t at = 0; at < bytes.size(); at += 255) {
    const size_t n = std::min<size_t>(255, bytes.size() - at);
    blocks += static_cast<char>(n);
    blocks += bytes.substr(at, n);
  }
  return blocks + '\0';
}

struct GifFrame {
  uint32_t left, top, width, height;
  std::vector<uint8_t> indices;
  int transparent = -1;
  int disposal = 0;
  bool interlaced = false;  // the indices are then in the order of the file
};
// `palette`: 2 to 256 colours, a power of two, of three bytes each.
inline std::string gif_file(uint32_t width, uint32_t height, const std::string& palette,
                            const std::vector<GifFrame>& frames) {
  int root = 1;
  while (3u << root < palette.size()) ++root;
  std::string s = "GIF89a";
  put_le(s, width, 2);
  put_le(s, height, 2);
  s += static_cast<char>(0x80 | (root - 1));
  s += std::string_view("\0\0", 2);
  s += palette;
  for (const GifFrame& f : frames) {
    s += "\x21\xf9\x04";
    s += static_cast<char>(f.disposal << 2 | (f.transparent >= 0 ? 1 : 0));
    s += std::string_view("\0\0", 2);
    s += static_cast<char>(f.transparent >= 0 ? f.transparent : 0);
    s += '\0';
    s += ',';
    for (uint32_t v : {f.left, f.top, f.width, f.height}) put_le(s, v, 2);
    s += static_cast<char>(f.interlaced ? 0x40 : 0);
    s += lzw(f.indices, std::max(root, 2));
  }
  return s + ';';
}

// --- BMP ---

inline std::string bmp_file(int32_t width, int32_t height, int bits, const std::string& palette,
                            const std::string& pixels, uint32_t compression = 0, const std::string& masks = "") {
  std::string s = "BM";
  const auto start = static_cast<uint32_t>(54 + masks.size() + palette.size());
  put_le(s, start + static_cast<uint32_t>(pixels.size()), 4);
  put_le(s, 0, 4);
  put_le(s, start, 4);
  put_le(s, 40, 4);
  put_le(s, static_cast<uint32_t>(width), 4);
  put_le(s, static_cast<uint32_t>(height), 4);
  put_le(s, 1, 2);
  put_le(s, static_cast<uint32_t>(bits), 2);
  put_le(s, compression, 4);
  put_le(s, static_cast<uint32_t>(pixels.size()), 4);
  put_le(s, 0, 4);
  put_le(s, 0, 4);
  put_le(s, static_cast<uint32_t>(palette.size() / 4), 4);
  put_le(s, 0, 4);
  return s + masks + palette + pixels;
}

// --- WebP: an animation of still files ---

inline std::string webp_chunk(const char* name, std::string data) {
  std::string s = name;
  put_le(s, static_cast<uint32_t>(data.size()), 4);
  if (data.size() % 2 == 1) data += '\0';
  return s + data;
}
inline std::string webp_animation(uint32_t width, uint32_t height, const std::vector<std::string>& stills) {
  std::string header(4, '\0');
  header[0] = 0x12;  // animation, alpha
  put_le(header, width - 1, 3);
  put_le(header, height - 1, 3);
  std::string body = "WEBP" + webp_chunk("VP8X", header) + webp_chunk("ANIM", std::string(6, '\0'));
  for (const std::string& still : stills) {
    std::string frame(6, '\0');
    put_le(frame, width - 1, 3);
    put_le(frame, height - 1, 3);
    put_le(frame, 100, 3);
    frame += '\2';  // drawn in place of what was there
    body += webp_chunk("ANMF", frame + still.substr(12));
  }
  std::string s = "RIFF";
  put_le(s, static_cast<uint32_t>(body.size()), 4);
  return s + body;
}

}  // namespace runnel::test
