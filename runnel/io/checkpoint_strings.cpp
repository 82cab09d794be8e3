#include "runnel/io/checkpoint_strings.h"

#include <limits>

#include "runnel/base/crc32c.h"
#include "runnel/base/varint.h"

namespace runnel::io {
namespace {

uint32_t extend_text(uint32_t crc, std::string_view text) { return crc32c_extend(crc, text.data(), text.size()); }

// Lengths count in the checksum as numbers, not as the varints that stand in the file.
uint32_t extend_u32(uint32_t crc, uint32_t value) {
  char buffer[4];
  store_fixed32(buffer, value);
  return crc32c_extend(crc, buffer, sizeof buffer);
}
uint32_t extend_u64(uint32_t crc, uint64_t value) {
  char buffer[8];
  store_fixed64(buffer, value);
  return crc32c_extend(crc, buffer, sizeof buffer);
}
uint32_t extend_string_length(uint32_t crc, uint64_t length) {
  return length <= std::numeric_limits<uint32_t>::max() ? extend_u32(crc, static_cast<uint32_t>(length))
                                                        : extend_u64(crc, length);
}

class ElementParser {
 public:
  explicit ElementParser(std::string_view bytes) : bytes_(bytes) {}

  uint64_t length() {
    const char* begin = bytes_.data() + at_;
    uint64_t value = 0;
    const char* end = get_varint(begin, bytes_.data() + bytes_.size(), &value);
    if (end == nullptr) throw StringTensorFault{"the length of an element is cut short", at_};
    at_ += static_cast<size_t>(end - begin);
    return value;
  }
  std::string_view take(uint64_t size, const char* what) {
    if (size > bytes_.size() - at_) throw StringTensorFault{what, at_};
    const std::string_view part = bytes_.substr(at_, size);
    at_ += size;
    return part;
  }
  // The masked checksum that stands here must be that of what went before; it counts in what follows.
  uint32_t checksum(uint32_t crc) {
    const size_t at = at_;
    const uint32_t masked = load_fixed32(take(4, "a checksum is cut short").data());
    if (crc32c_unmask(masked) != crc) throw StringTensorFault{"a checksum is wrong", at};
    return extend_u32(crc, masked);
  }
  void finish() const {
    if (at_ != bytes_.size()) throw StringTensorFault{"something follows the last element", at_};
  }
  // Each element takes a byte at least: a few bytes must not ask for a large memory.
  void check_count(uint64_t count) const {
    if (count > bytes_.size()) throw StringTensorFault{"there are more elements than bytes", 0};
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

constexpr const char* kTooLong = "an element is longer than what is there";

}  // namespace

StringTensorBytes strings_to_bytes(std::span<const std::string_view> strings) {
  StringTensorBytes out;
  size_t size = 4;
  for (std::string_view each : strings) size += varint_size(each.size()) + each.size();
  out.bytes.reserve(size);
  for (std::string_view each : strings) {
    append_varint(out.bytes, each.size());
    out.crc32c = extend_string_length(out.crc32c, each.size());
  }
  const uint32_t lengths = crc32c_mask(out.crc32c);
  append_fixed32(out.bytes, lengths);
  out.crc32c = extend_u32(out.crc32c, lengths);
  for (std::string_view each : strings) {
    out.bytes += each;
    out.crc32c = extend_text(out.crc32c, each);
  }
  return out;
}

StringTensorBytes variants_to_bytes(std::span<const std::string_view> variants) {
  StringTensorBytes out;
  for (std::string_view each : variants) {
    append_varint(out.bytes, each.size());
    out.bytes += each;
    out.crc32c = extend_text(extend_u64(out.crc32c, each.size()), each);
    const uint32_t so_far = crc32c_mask(out.crc32c);
    append_fixed32(out.bytes, so_far);
    out.crc32c = extend_u32(out.crc32c, so_far);
  }
  return out;
}

std::vector<std::string_view> strings_from_bytes(std::string_view bytes, uint64_t count, uint32_t* crc32c) {
  ElementParser parser(bytes);
  parser.check_count(count);
  std::vector<uint64_t> lengths(count);
  uint32_t crc = 0;
  for (uint64_t& length : lengths) crc = extend_string_length(crc, length = parser.length());
  crc = parser.checksum(crc);
  std::vector<std::string_view> strings;
  strings.reserve(count);
  for (uint64_t length : lengths) {
    strings.push_back(parser.take(length, kTooLong));
    crc = extend_text(crc, strings.back());
  }
  parser.finish();
  *crc32c = crc;
  return strings;
}

std::vector<std::string_view> variants_from_bytes(std::string_view bytes, uint64_t count, uint32_t* crc32c) {
  ElementParser parser(bytes);
  parser.check_count(count);
  std::vector<std::string_view> variants;
  uint32_t crc = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = parser.length();
    variants.push_back(parser.take(length, kTooLong));
    crc = parser.checksum(extend_text(extend_u64(crc, length), variants.back()));
  }
  parser.finish();
  *crc32c = crc;
  return variants;
}

}  // namespace runnel::io
