#pragma once

// Walking over protobuf's wire format without generated code. Every function checks its bounds and gives false (or a
// negative count) at the first byte that makes no sense; the cursor then stands where it was found.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runnel/base/export.h"
#include "runnel/base/varint.h"

namespace runnel::io::wire {

enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kEndGroup = 4, kFixed32 = 5 };

constexpr uint32_t tag(uint32_t field, Type type) { return field << 3 | type; }

// The steps are inlined wherever they are taken: called, each would wait for the cursor to come back from memory.
struct Cursor {
  const char* p;
  const char* end;

  explicit Cursor(std::string_view text) : p(text.data()), end(text.data() + text.size()) {}
  bool done() const { return p == end; }

  [[gnu::always_inline]] bool varint(uint64_t* v) {
    const char* next = get_varint(p, end, v);
    if (next == nullptr) [[unlikely]]
      return false;
    p = next;
    return true;
  }
  [[gnu::always_inline]] bool tag(uint32_t* t) {
    uint64_t v = 0;
    if (!varint(&v) || v > UINT32_MAX || v >> 3 == 0) [[unlikely]]
      return false;
    *t = static_cast<uint32_t>(v);
    return true;
  }
  [[gnu::always_inline]] bool bytes(std::string_view* out) {
    uint64_t size = 0;
    const char* start = get_varint(p, end, &size);
    if (start == nullptr || size > static_cast<uint64_t>(end - start)) [[unlikely]]
      return false;
    *out = {start, static_cast<size_t>(size)};
    p = start + size;
    return true;
  }
  // What follows a tag nobody asked for.
  bool skip(uint32_t t, int depth = 0) {
    uint64_t v = 0;
    std::string_view text;
    switch (t & 7) {
      case kVarint: return varint(&v);
      case kBytes: return bytes(&text);
      case kFixed64: return advance(8);
      case kFixed32: return advance(4);
      case kGroup: {
        if (depth > 60) return false;  // protobuf's own limit is near
        uint32_t inner = 0;
        while (tag(&inner)) {
          if ((inner & 7) == kEndGroup) return inner >> 3 == t >> 3;
          if (!skip(inner, depth + 1)) return false;
        }
        return false;
      }
      default: return false;
    }
  }

 private:
  bool advance(ptrdiff_t n) {
    if (end - p < n) return false;
    p += n;
    return true;
  }
};

// Elements of a FloatList, an Int64List or a BytesList, packed or not. They return how many there are (-1: damaged) and
// write the first `room` of them.
RUNNEL_API int64_t read_floats(std::string_view list, float* out, int64_t room);
RUNNEL_API int64_t read_int64s(std::string_view list, int64_t* out, int64_t room);
// Calls take(view) for each value; false if damaged.
template <class Take>
bool read_bytes(std::string_view list, Take&& take) {
  Cursor c(list);
  while (!c.done()) {
    uint32_t t = 0;
    if (!c.tag(&t)) return false;
    if (t == tag(1, kBytes)) {
      std::string_view value;
      if (!c.bytes(&value)) return false;
      take(value);
    } else if (!c.skip(t)) {
      return false;
    }
  }
  return true;
}

// The fields of the oneof in Feature.
enum class Kind : uint8_t { none = 0, bytes = 1, floats = 2, int64s = 3 };

// Walks over the features of a serialized Example, calling take(key, kind, list) for each: `list` is the serialized
// list message. False if the message is damaged or merely unusual (fields in another order, twice or unknown), so
// that the general parser must have a look; some features may have been handed out by then.
template <class Take>
bool visit_features(std::string_view example, Take&& take) {
  Cursor c(example);
  while (!c.done()) {
    std::string_view features;
    if (*c.p++ != tag(1, kBytes) || !c.bytes(&features)) return false;
    Cursor f(features);
    while (!f.done()) {
      std::string_view entry;
      if (*f.p++ != tag(1, kBytes) || !f.bytes(&entry)) return false;
      Cursor e(entry);
      std::string_view key, value;
      if (e.done() || *e.p++ != tag(1, kBytes) || !e.bytes(&key)) return false;
      if (e.done() || *e.p++ != tag(2, kBytes) || !e.bytes(&value) || !e.done()) return false;
      if (value.empty()) {
        take(key, Kind::none, value);
        continue;
      }
      Cursor v(value);
      std::string_view list;
      const auto t = static_cast<unsigned char>(*v.p++);
      if ((t & 7) != kBytes || t < tag(1, kBytes) || t > tag(3, kBytes) || !v.bytes(&list) || !v.done()) return false;
      take(key, static_cast<Kind>(t >> 3), list);
    }
  }
  return true;
}

}  // namespace runnel::io::wire
