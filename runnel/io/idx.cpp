#include "runnel/io/idx.h"

#include <algorithm>
#include <bit>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/gzip.h"

namespace runnel::io {
namespace {

bool known(uint8_t type) { return type == 0x08 || type == 0x09 || (type >= 0x0b && type <= 0x0e); }

uint32_t read_u32(ByteSpan bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  return value;
}

}  // namespace

const char* idx_type_name(IdxType type) {
  switch (type) {
    case IdxType::uint8: return "uint8";
    case IdxType::int8: return "int8";
    case IdxType::int16: return "int16";
    case IdxType::int32: return "int32";
    case IdxType::float32: return "float32";
    case IdxType::float64: return "float64";
  }
  return "unknown";
}

size_t idx_type_size(IdxType type) {
  switch (type) {
    case IdxType::uint8:
    case IdxType::int8: return 1;
    case IdxType::int16: return 2;
    case IdxType::int32:
    case IdxType::float32: return 4;
    case IdxType::float64: return 8;
  }
  return 0;
}

IdxView parse_idx(ByteSpan bytes, const std::string& name, SourceSite where) {
  return at_caller(where, [&] {
    auto bad = [&](size_t offset, const std::string& what) {
      return make_error(Code::data_loss, "[idx] {}: {} at byte {}", name, what, offset)
          .inside(file_frame(name, offset));
    };
    if (bytes.size() < 4) throw bad(bytes.size(), "the file ends inside the 4-byte magic number");
    for (size_t i = 0; i < 2; ++i) {
      if (bytes[i] != std::byte{0}) throw bad(i, fmt::format("not an idx file: {:#04x} instead of 0", bytes[i]));
    }
    auto type_byte = static_cast<uint8_t>(bytes[2]);
    if (!known(type_byte)) throw bad(2, fmt::format("unknown element type {:#04x}", type_byte));
    auto type = static_cast<IdxType>(type_byte);
    auto rank = static_cast<size_t>(bytes[3]);
    size_t header = 4 + 4 * rank;
    if (bytes.size() < header) {
      throw bad(bytes.size(), fmt::format("the file ends inside the header of {} dimensions", rank));
    }

    IdxView view{.type = type, .dims = {}, .data = bytes.subspan(header)};
    // The product is bounded by what the file holds, so it cannot overflow; a zero anywhere makes it zero.
    bool empty = false;
    for (size_t i = 0; i < rank; ++i) {
      view.dims.push_back(read_u32(bytes, 4 + 4 * i));
      empty = empty || view.dims.back() == 0;
    }
    uint64_t size = empty ? 0 : idx_type_size(type);
    for (size_t i = 0; i < rank && !empty; ++i) {
      auto dim = static_cast<uint64_t>(view.dims[i]);
      if (dim > view.data.size() / size) {
        throw bad(4 + 4 * i, fmt::format("the header announces {} elements [{}], but only {} bytes follow it",
                                         idx_type_name(type), fmt::join(view.dims, ","), view.data.size()));
      }
      size *= dim;
    }
    if (size != view.data.size()) {
      throw bad(header + size, fmt::format("{} bytes too many after the elements", view.data.size() - size));
    }
    return view;
  });
}

Idx read_idx(const std::string& path, Env& env, SourceSite where) {
  return at_caller(where, [&]() -> Idx {
    std::unique_ptr<MappedFile> file = env.map(path);
    std::vector<std::byte> plain;
    ByteSpan bytes = file->bytes();
    if (is_gzip(bytes)) {
      plain = gunzip(bytes, path);
      bytes = plain;
    }
    IdxView view = parse_idx(bytes, path);
    Idx idx{.type = view.type, .dims = std::move(view.dims), .data = {view.data.begin(), view.data.end()}};
    size_t width = idx_type_size(idx.type);
    if constexpr (std::endian::native == std::endian::little) {
      for (size_t i = 0; width > 1 && i < idx.data.size(); i += width) {
        std::reverse(idx.data.begin() + static_cast<ptrdiff_t>(i),
                     idx.data.begin() + static_cast<ptrdiff_t>(i + width));
      }
    }
    return idx;
  });
}

}  // namespace runnel::io
