#pragma once

// The integers of protobuf's wire format: base-128 varints, zigzag, and little-endian fixed widths.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace runnel {

inline constexpr size_t kMaxVarintBytes = 10;

inline size_t varint_size(uint64_t v) { return (static_cast<size_t>(std::bit_width(v | 1)) + 6) / 7; }

// Writes v at p, which has room for kMaxVarintBytes; returns the end.
inline char* put_varint(char* p, uint64_t v) {
  while (v >= 0x80) {
    *p++ = static_cast<char>(v | 0x80);
    v >>= 7;
  }
  *p++ = static_cast<char>(v);
  return p;
}

inline void append_varint(std::string& out, uint64_t v) {
  char buffer[kMaxVarintBytes];
  out.append(buffer, static_cast<size_t>(put_varint(buffer, v) - buffer));
}

// Reads a varint from [p, end); returns what follows it, or null if it is cut short or longer than ten bytes.
// As in protobuf, bits past the 64th are dropped.
inline const char* get_varint(const char* p, const char* end, uint64_t* v) {
  if (p < end && static_cast<unsigned char>(*p) < 0x80) [[likely]] {
    *v = static_cast<unsigned char>(*p);
    return p + 1;
  }
  uint64_t value = 0;
  for (int shift = 0; shift < 70 && p < end; shift += 7) {
    const uint64_t byte = static_cast<unsigned char>(*p++);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      *v = value;
      return p;
    }
  }
  return nullptr;
}

// The low 32 bits of a varint, as protobuf reads its 32-bit fields (a negative int32 takes ten bytes).
inline const char* get_varint32(const char* p, const char* end, uint32_t* v) {
  uint64_t wide = 0;
  p = get_varint(p, end, &wide);
  if (p != nullptr) *v = static_cast<uint32_t>(wide);
  return p;
}

inline uint64_t zigzag_encode(int64_t v) { return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63); }
inline int64_t zigzag_decode(uint64_t v) { return static_cast<int64_t>((v >> 1) ^ (0 - (v & 1))); }

static_assert(std::endian::native == std::endian::little, "files are little-endian and read in place");

inline uint32_t load_fixed32(const void* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
inline uint64_t load_fixed64(const void* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
inline void store_fixed32(void* p, uint32_t v) { std::memcpy(p, &v, sizeof(v)); }
inline void store_fixed64(void* p, uint64_t v) { std::memcpy(p, &v, sizeof(v)); }

inline void append_fixed32(std::string& out, uint32_t v) {
  char buffer[sizeof(v)];
  store_fixed32(buffer, v);
  out.append(buffer, sizeof(v));
}
inline void append_fixed64(std::string& out, uint64_t v) {
  char buffer[sizeof(v)];
  store_fixed64(buffer, v);
  out.append(buffer, sizeof(v));
}

// Read from [p, end); return what follows, or null if it is cut short.
inline const char* get_fixed32(const char* p, const char* end, uint32_t* v) {
  if (end - p < 4) return nullptr;
  *v = load_fixed32(p);
  return p + 4;
}
inline const char* get_fixed64(const char* p, const char* end, uint64_t* v) {
  if (end - p < 8) return nullptr;
  *v = load_fixed64(p);
  return p + 8;
}

}  // namespace runnel
