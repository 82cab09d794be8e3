#pragma once

// The records that the benchmarks of TFRecord and Example read, as serialized Examples; both sides make the same.
// The wire format is written out here so that neither side's library is needed.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace bench {

inline std::string wire_field(int tag, const std::string& body) {
  std::string out(1, static_cast<char>(tag));
  for (size_t n = body.size();; n >>= 7) {
    out += static_cast<char>(n >= 0x80 ? (n & 0x7f) | 0x80 : n);
    if (n < 0x80) break;
  }
  return out + body;
}

inline std::string wire_varint(uint64_t v) {
  std::string out;
  for (; v >= 0x80; v >>= 7) out += static_cast<char>((v & 0x7f) | 0x80);
  return out + static_cast<char>(v);
}

inline std::string feature_entry(const std::string& key, int kind, const std::string& list) {
  return wire_field(0x0a, wire_field(0x0a, key) + wire_field(0x12, wire_field(kind << 3 | 2, wire_field(0x0a, list))));
}

// 842 bytes in a file with its frame: an image of 784 bytes and its label.
inline std::string image_record(int i) {
  std::string image(784, '\0');
  for (int j = 0; j < 784; ++j) image[static_cast<size_t>(j)] = static_cast<char>(i * 31 + j * 7);
  return wire_field(0x0a, feature_entry("image_raw", 1, image) +
                              feature_entry("label", 3, wire_varint(static_cast<uint64_t>(i % 10))));
}

// 136 bytes with its frame: 16 floats, a number and a short name.
inline std::string small_record(int i) {
  std::string values(64, '\0');
  for (int j = 0; j < 16; ++j) {
    const float v = static_cast<float>(i) * .1f + static_cast<float>(j);
    std::memcpy(values.data() + 4 * j, &v, 4);
  }
  return wire_field(0x0a, feature_entry("id", 3, wire_varint(static_cast<uint64_t>(i))) +
                              feature_entry("name", 1, "item" + std::to_string(i)) +
                              feature_entry("values", 2, values));
}

inline constexpr int kBatch = 50;
inline constexpr int kBatches = 40;  // taken in turn: records come from memory, not from the first cache

}  // namespace bench
