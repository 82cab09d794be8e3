#include "runnel/io/npz.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <set>
#include <string_view>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/zip.h"

namespace runnel::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 64;

struct PlainType {
  std::string_view code;  // as in a header, without the byte order
  std::string_view name;
  size_t size;
  size_t swapped;  // bytes that change places in the other byte order
};
constexpr std::array<PlainType, 14> kTypes = {{{"b1", "bool", 1, 1},
                                               {"i1", "int8", 1, 1},
                                               {"i2", "int16", 2, 2},
                                               {"i4", "int32", 4, 4},
                                               {"i8", "int64", 8, 8},
                                               {"u1", "uint8", 1, 1},
                                               {"u2", "uint16", 2, 2},
                                               {"u4", "uint32", 4, 4},
                                               {"u8", "uint64", 8, 8},
                                               {"f2", "float16", 2, 2},
                                               {"f4", "float32", 4, 4},
                                               {"f8", "float64", 8, 8},
                                               {"c8", "complex64", 8, 4},
                                               {"c16", "complex128", 16, 8}}};

const PlainType& type_by_name(const std::string& name) {
  for (const PlainType& type : kTypes) {
    if (type.name == name) return type;
  }
  throw invalid_argument("[npy] '{}' is not one of NumPy's plain types", name);
}

struct NpyHeader {
  std::string descr;
  size_t descr_offset = 0;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, size_t offset, const std::string& name)
      : text_(text), offset_(offset), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    std::set<std::string> seen;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      if (!seen.insert(key).second) throw bad("'" + key + "' stands twice");
      expect(':');
      skip_space();
      if (key == "descr") {
        header.descr_offset = offset_ + at_;
        if (peek() == '[') throw unsupported("an array of records");
        header.descr = quoted();
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = shape();
      } else {
        throw bad("unknown entry '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) throw bad("something follows the header's dictionary");
    if (seen.size() != 3) throw bad("the header lacks descr, fortran_order or shape");
    return header;
  }

  Error unsupported(const std::string& what) const {
    return make_error(Code::unimplemented, "[npy] {}: {} is not read, only arrays of numbers and bool", name_, what);
  }

 private:
  Error bad(const std::string& what) const {
    return make_error(Code::data_loss, "[npy] {}: {} at byte {}", name_, what, offset_ + at_)
        .inside(file_frame(name_, offset_ + at_));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t') ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw bad(fmt::format("the header has no '{}'", c));
  }
  std::string quoted() {
    skip_space();
    const char quote = peek();
    if (quote != '\'' && quote != '"') throw bad("the header has no quoted text");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw bad("a text without an end");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  bool boolean() {
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    throw bad("fortran_order is neither True nor False");
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> dims;
    expect('(');
    while (!accept(')')) {
      int64_t dim = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) throw bad("no dimension");
      at_ += static_cast<size_t>(end - begin);
      if (peek() == 'L') ++at_;  // Python 2 wrote long integers so
      dims.push_back(dim);
      if (dims.size() > kMaxRank) throw bad(fmt::format("more than {} dimensions", kMaxRank));
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  size_t offset_;  // of the text in the file
  const std::string& name_;
  size_t at_ = 0;
};

// Elements that stand in column order, in row order.
std::vector<std::byte> transposed(ByteSpan data, const std::vector<int64_t>& shape, size_t width) {
  std::vector<std::byte> out(data.size());
  std::vector<size_t> stride(shape.size());  // in `data`, in elements
  size_t elements = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    stride[i] = elements;
    elements *= static_cast<size_t>(shape[i]);
  }
  std::vector<int64_t> index(shape.size(), 0);
  size_t from = 0;
  for (size_t to = 0; to < elements; ++to) {
    std::memcpy(out.data() + to * width, data.data() + from * width, width);
    for (size_t i = shape.size(); i-- > 0;) {
      from += stride[i];
      if (++index[i] < shape[i]) break;
      from -= stride[i] * static_cast<size_t>(shape[i]);
      index[i] = 0;
    }
  }
  return out;
}

void swap_bytes(std::vector<std::byte>& data, size_t width) {
  for (size_t i = 0; width > 1 && i < data.size(); i += width) {
    std::reverse(data.begin() + static_cast<ptrdiff_t>(i), data.begin() + static_cast<ptrdiff_t>(i + width));
  }
}

}  // namespace

size_t npy_dtype_size(const std::string& dtype, SourceSite where) {
  return at_caller(where, [&] { return type_by_name(dtype).size; });
}

NpyArray parse_npy(ByteSpan bytes, const std::string& name, SourceSite where) {
  return at_caller(where, [&]() -> NpyArray {
    auto bad = [&](size_t offset, const std::string& what) {
      return make_error(Code::data_loss, "[npy] {}: {} at byte {}", name, what, offset)
          .inside(file_frame(name, offset));
    };
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.substr(0, 6) != kMagic) throw bad(0, "not a .npy file: it does not begin with \\x93NUMPY");
    if (text.size() < 10) throw bad(text.size(), "the file ends inside the magic number");
    const auto version = static_cast<uint8_t>(text[6]);
    if (version < 1 || version > 3) throw bad(6, fmt::format("unknown version {}", version));
    const size_t length_bytes = version == 1 ? 2 : 4, begin = 8 + length_bytes;
    if (text.size() < begin) throw bad(text.size(), "the file ends inside the length of the header");
    size_t length = 0;
    for (size_t i = length_bytes; i-- > 0;) length = length << 8 | static_cast<uint8_t>(text[8 + i]);
    if (length > text.size() - begin) {
      throw bad(
          8, fmt::format("the header of {} bytes does not fit into the {} that follow", length, text.size() - begin));
    }
    HeaderParser parser(text.substr(begin, length), begin, name);
    NpyHeader header = parser.parse();

    const std::string code = header.descr.substr(std::min<size_t>(1, header.descr.size()));
    const char order = header.descr.empty() ? ' ' : header.descr[0];
    const auto* type = std::find_if(kTypes.begin(), kTypes.end(), [&](const PlainType& t) { return t.code == code; });
    if (std::string_view("<>|=").find(order) == std::string_view::npos) {
      throw bad(header.descr_offset, fmt::format("no type '{}'", header.descr));
    }
    if (type == kTypes.end()) throw parser.unsupported(fmt::format("an array of type '{}'", header.descr));

    ByteSpan data = bytes.subspan(begin + length);
    const bool empty = std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end();
    uint64_t size = empty ? 0 : type->size;
    for (size_t i = 0; i < header.shape.size() && !empty; ++i) {  // bounded by what the file holds: no overflow
      const auto dim = static_cast<uint64_t>(header.shape[i]);
      if (dim > data.size() / size) {
        throw bad(begin + length, fmt::format("the header announces {} elements [{}], but only {} bytes follow it",
                                              type->name, comma_separated(header.shape), data.size()));
      }
      size *= dim;
    }
    if (size != data.size()) {
      throw bad(begin + length + size, fmt::format("{} bytes too many after the elements", data.size() - size));
    }
    NpyArray array{.dtype = std::string(type->name), .shape = std::move(header.shape), .data = {}};
    if (header.fortran_order && array.shape.size() > 1) {
      array.data = transposed(data, array.shape, type->size);
    } else {
      array.data.assign(data.begin(), data.end());
    }
    if (order == (std::endian::native == std::endian::little ? '>' : '<')) swap_bytes(array.data, type->swapped);
    if (type->name == "bool") {  // any other value would not be a bool
      for (std::byte& b : array.data) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
    }
    return array;
  });
}

NpyArray read_npy(const std::string& path, Env& env, SourceSite where) {
  return at_caller(where, [&] { return parse_npy(env.map(path)->bytes(), path); });
}

std::vector<NamedArray> parse_npz(ByteSpan bytes, const std::string& name, size_t max_bytes, SourceSite where) {
  return at_caller(where, [&] {
    std::vector<NamedArray> arrays;
    std::set<std::string> seen;
    for (const ZipMember& member : zip_members(bytes, name)) {
      std::string key = member.name;
      if (key.ends_with(".npy")) key.resize(key.size() - 4);
      if (!seen.insert(key).second) {
        throw make_error(Code::data_loss, "[npz] {}: the array '{}' stands twice at byte {}", name, key,
                         member.header_offset);
      }
      const std::vector<std::byte> file = read_zip_member(bytes, member, name, max_bytes);
      max_bytes -= file.size();
      arrays.push_back({key, parse_npy(file, fmt::format("{} ({})", name, member.name))});
    }
    return arrays;
  });
}

std::vector<NamedArray> read_npz(const std::string& path, Env& env, SourceSite where) {
  return at_caller(where, [&] { return parse_npz(env.map(path)->bytes(), path); });
}

std::vector<std::byte> npy(const NpyView& array, SourceSite where) {
  return at_caller(where, [&] {
    const PlainType& type = type_by_name(array.dtype);
    uint64_t size = type.size;
    for (int64_t dim : array.shape) size *= static_cast<uint64_t>(dim);
    if (size != array.data.size()) {
      throw invalid_argument("[npy] {} elements [{}] are {} bytes, but {} were given", array.dtype,
                             comma_separated(array.shape), size, array.data.size());
    }
    const char native = std::endian::native == std::endian::little ? '<' : '>';
    std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': (",
                                     type.swapped == 1 ? '|' : native, type.code);
    for (int64_t dim : array.shape) header += fmt::format("{}, ", dim);
    if (array.shape.size() > 1) header.resize(header.size() - 2);
    if (array.shape.size() == 1) header.pop_back();  // a tuple of one is (3,)
    header += "), }";
    const size_t padded = (10 + header.size() + 1 + 63) / 64 * 64 - 10;  // the elements begin at a multiple of 64
    header.resize(padded - 1, ' ');
    header += '\n';
    std::string file(kMagic);
    file += {'\1', '\0', static_cast<char>(padded & 0xff), static_cast<char>(padded >> 8)};
    file += header;
    const ByteSpan begin = as_bytes(file);
    std::vector<std::byte> out(begin.begin(), begin.end());
    out.insert(out.end(), array.data.begin(), array.data.end());
    return out;
  });
}

std::vector<std::byte> npz(const std::vector<NamedView>& arrays, bool compress, SourceSite where) {
  return at_caller(where, [&] {
    std::vector<std::vector<std::byte>> files;
    std::vector<ZipEntry> entries;
    for (const NamedView& each : arrays) {
      files.push_back(npy(each.array));
      entries.push_back({each.name + ".npy", files.back()});  // the bytes stay where they are when `files` grows
    }
    return zip(entries, compress);
  });
}

}  // namespace runnel::io
