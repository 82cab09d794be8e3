#include "runnel/io/wire.h"

#include <algorithm>

namespace runnel::io::wire {
namespace {

int64_t packed_floats(std::string_view data, float* out, int64_t room) {
  if (data.size() % 4 != 0) return -1;
  const auto n = static_cast<int64_t>(data.size() / 4);
  const int64_t written = std::clamp<int64_t>(room, 0, n);
  if (written > 0) std::memcpy(out, data.data(), static_cast<size_t>(written) * 4);
  return n;
}

int64_t packed_int64s(std::string_view data, int64_t* out, int64_t room) {
  const char *p = data.data(), *end = p + data.size();
  int64_t n = 0;
  for (; p < end && n < room; ++n) {
    uint64_t v = 0;
    p = get_varint(p, end, &v);
    if (p == nullptr) return -1;
    out[n] = static_cast<int64_t>(v);
  }
  while (p < end) {  // only counted
    uint64_t v = 0;
    p = get_varint(p, end, &v);
    if (p == nullptr) return -1;
    ++n;
  }
  return n;
}

}  // namespace

int64_t read_floats(std::string_view list, float* out, int64_t room) {
  Cursor c(list);
  int64_t n = 0;
  while (!c.done()) {
    uint32_t t = 0;
    if (!c.tag(&t)) return -1;
    if (t == tag(1, kBytes)) {
      std::string_view data;
      if (!c.bytes(&data)) return -1;
      const int64_t more = packed_floats(data, out + std::min(n, room), room - n);
      if (more < 0) return -1;
      n += more;
    } else if (t == tag(1, kFixed32)) {
      uint32_t bits = 0;
      const char* next = get_fixed32(c.p, c.end, &bits);
      if (next == nullptr) return -1;
      c.p = next;
      if (n < room) std::memcpy(out + n, &bits, 4);
      ++n;
    } else if (!c.skip(t)) {
      return -1;
    }
  }
  return n;
}

int64_t read_int64s(std::string_view list, int64_t* out, int64_t room) {
  Cursor c(list);
  int64_t n = 0;
  while (!c.done()) {
    uint32_t t = 0;
    if (!c.tag(&t)) return -1;
    if (t == tag(1, kBytes)) {
      std::string_view data;
      if (!c.bytes(&data)) return -1;
      const int64_t more = packed_int64s(data, out + std::min(n, room), room - n);
      if (more < 0) return -1;
      n += more;
    } else if (t == tag(1, kVarint)) {
      uint64_t v = 0;
      if (!c.varint(&v)) return -1;
      if (n < room) out[n] = static_cast<int64_t>(v);
      ++n;
    } else if (!c.skip(t)) {
      return -1;
    }
  }
  return n;
}

}  // namespace runnel::io::wire
