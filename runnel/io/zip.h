#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::io {

// One file of a zip archive, as the archive's directory describes it.
struct ZipMember {
  std::string name;
  uint16_t method = 0;         // 0: stored, 8: deflated
  uint64_t header_offset = 0;  // of the member's own header
  uint64_t compressed_size = 0;
  uint64_t size = 0;
  uint32_t crc32 = 0;
};

// The directory of an archive that lies in memory (a mapped file), in its order; zip64 is understood. `name` stands in
// errors (data_loss), which also give the offset.
RUNNEL_API std::vector<ZipMember> zip_members(ByteSpan archive, const std::string& name);

// The bytes of one member, decompressed and checked against its checksum. More than `max_bytes` is an error.
RUNNEL_API std::vector<std::byte> read_zip_member(ByteSpan archive, const ZipMember& member, const std::string& name,
                                                  size_t max_bytes = size_t{1} << 32);

struct ZipEntry {
  std::string name;
  ByteSpan bytes;
};
// An archive of these files, below 4 GiB. The same entries give the same bytes: no times are written.
RUNNEL_API std::vector<std::byte> zip(const std::vector<ZipEntry>& entries, bool compress = false);

}  // namespace runnel::io
