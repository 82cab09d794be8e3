#pragma once

// Internal: tensors of strings and of variants as they stand in a shard.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::io {

struct StringTensorBytes {
  std::string bytes;
  uint32_t crc32c = 0;  // not masked
};

// Strings: the lengths as varints, their masked checksum, the texts.
RUNNEL_API StringTensorBytes strings_to_bytes(std::span<const std::string_view> strings);
// Variants, each a serialized VariantTensorDataProto: for each its length as a varint, its bytes, the masked checksum
// of all so far.
RUNNEL_API StringTensorBytes variants_to_bytes(std::span<const std::string_view> variants);

// What went wrong, and at which of the bytes.
struct StringTensorFault {
  const char* what;
  size_t at;
};
// `count` elements that are exactly `bytes`; throws StringTensorFault. `crc32c` becomes the checksum of the tensor.
RUNNEL_API std::vector<std::string_view> strings_from_bytes(std::string_view bytes, uint64_t count, uint32_t* crc32c);
RUNNEL_API std::vector<std::string_view> variants_from_bytes(std::string_view bytes, uint64_t count, uint32_t* crc32c);

}  // namespace runnel::io
