#pragma once

// Protobuf messages taken apart by hand: what tests compare the library's reading with.
#include <cstdint>
#include <string_view>
#include <vector>

#include "runnel/base/varint.h"

namespace runnel::test {

struct WireField {
  int number = 0;
  uint64_t integer = 0;    // of varints and fixed widths
  std::string_view bytes;  // of length-delimited fields
};

// The fields of a message in order; stops at the first byte that makes no sense, `ok` tells.
inline std::vector<WireField> wire_fields(std::string_view message, bool* ok = nullptr) {
  std::vector<WireField> fields;
  const char* p = message.data();
  const char* end = p + message.size();
  while (p != nullptr && p < end) {
    uint64_t tag = 0;
    p = get_varint(p, end, &tag);
    if (p == nullptr) break;
    WireField f;
    f.number = static_cast<int>(tag >> 3);
    uint32_t narrow = 0;
    switch (tag & 7) {
      case 0: p = get_varint(p, end, &f.integer); break;
      case 1: p = get_fixed64(p, end, &f.integer); break;
      case 5:
        p = get_fixed32(p, end, &narrow);
        f.integer = narrow;
        break;
      case 2: {
        uint64_t n = 0;
        p = get_varint(p, end, &n);
        if (p == nullptr || n > static_cast<uint64_t>(end - p)) {
          p = nullptr;
          break;
        }
        f.bytes = std::string_view(p, n);
        p += n;
        break;
      }
      default: p = nullptr;
    }
    if (p != nullptr) fields.push_back(f);
  }
  if (ok) *ok = p == end;
  return fields;
}

inline std::vector<std::string_view> wire_messages(std::string_view message, int number) {
  std::vector<std::string_view> all;
  for (const WireField& f : wire_fields(message)) {
    if (f.number == number) all.push_back(f.bytes);
  }
  return all;
}

}  // namespace runnel::test
