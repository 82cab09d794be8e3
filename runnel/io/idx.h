#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

// The idx format of the MNIST files: two zero bytes, a type byte, the number of dimensions, each dimension
// as a big-endian u32, then the elements, big-endian, row-major, up to the end of the file.
enum class IdxType : uint8_t {
  uint8 = 0x08,
  int8 = 0x09,
  int16 = 0x0b,
  int32 = 0x0c,
  float32 = 0x0d,
  float64 = 0x0e,
};

RUNNEL_API const char* idx_type_name(IdxType type);  // "uint8"
RUNNEL_API size_t idx_type_size(IdxType type);

struct IdxView {
  IdxType type;
  std::vector<int64_t> dims;
  ByteSpan data;  // the elements as they stand in the file
};

// Checks everything, keeps pointing into `bytes`. `name` stands in errors, which also give the offset.
RUNNEL_API IdxView parse_idx(ByteSpan bytes, const std::string& name, SourceSite where = SourceSite::current());

struct Idx {
  IdxType type = IdxType::uint8;
  std::vector<int64_t> dims;
  std::vector<std::byte> data;  // the elements in the machine's byte order
};

RUNNEL_API Idx read_idx(const std::string& path, Env& env = Env::posix(),
                        SourceSite where = SourceSite::current());  // plain or gzip, by content

}  // namespace runnel::io
