#include "runnel/base/utf8.h"

#include <algorithm>

namespace runnel {

CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const int extra = first >= 0xF0 && first < 0xF5   ? 3
                    : first >= 0xE0 && first < 0xF0 ? 2
                    : first >= 0xC2 && first < 0xE0 ? 1
                                                    : 0;
  uint32_t value = first & (0x3Fu >> extra);
  for (int i = 1; i <= extra; ++i) {
    // The second byte tells of overlong forms, surrogates and values past U+10FFFF.
    const uint8_t least = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const uint8_t most = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    const auto at = static_cast<size_t>(i);
    if (at >= text.size() || byte(at) < least || byte(at) > most) return {0xFFFD, i, false};
    value = value << 6 | (byte(at) & 0x3Fu);
  }
  if (extra == 0) return {0xFFFD, 1, false};
  return {value, extra + 1, true};
}

void append_utf8(uint32_t c, std::string& out) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

int64_t utf8_length(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

}  // namespace runnel
