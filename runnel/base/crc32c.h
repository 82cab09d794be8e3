#pragma once

#include <cstddef>
#include <cstdint>

#include "runnel/base/export.h"

namespace runnel {

// CRC-32C (Castagnoli). crc32c_extend(crc32c(a), b) is the checksum of a followed by b.
RUNNEL_API uint32_t crc32c_extend(uint32_t crc, const void* data, size_t size);
inline uint32_t crc32c(const void* data, size_t size) { return crc32c_extend(0, data, size); }

// The checksum of a followed by b, from those of a and of b and the size of b: for parts that are summed up separately.
RUNNEL_API uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t size_of_b);

// The same as crc32c_extend without the processor's instruction: what runs where there is none, and the tests' second
// opinion.
RUNNEL_API uint32_t crc32c_extend_portable(uint32_t crc, const void* data, size_t size);

// TFRecord and tables store checksums masked, since a checksum of data that holds checksums is weak.
inline uint32_t crc32c_mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t crc32c_unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace runnel
