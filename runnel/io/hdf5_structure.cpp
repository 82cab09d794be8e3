#include "runnel/io/hdf5_structure.h"

#include <algorithm>
#include <limits>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";
constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();  // HDF5's undefined address
constexpr int kMaxHdf5Rank = 32;
constexpr size_t kMaxBlocks = 1000;  // of one object header
// Types of messages in object headers.
enum Message { kNil = 0, kDataspace = 1, kDatatype = 3, kLink = 6, kLayout = 8, kFilters = 11, kAttribute = 12 };
constexpr int kContinuation = 16, kSymbolTable = 17, kLinkInfo = 2, kAttributeInfo = 21;
constexpr int kSharedMessage = 2;  // a flag
// Classes of datatypes.
enum TypeClass { kInteger = 0, kFloat = 1, kText = 3, kEnum = 8, kVariable = 9 };

uint64_t padded(uint64_t size) { return (size + 7) / 8 * 8; }

[[noreturn]] void damaged(std::string what, uint64_t at) { throw Hdf5Fault{std::move(what), at}; }
[[noreturn]] void unsupported(std::string what, uint64_t at) { throw Hdf5Fault{std::move(what), at, true}; }

bool is_number_size(uint64_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

}  // namespace

std::string_view Hdf5Structure::at(uint64_t address, uint64_t length) const {
  if (address > bytes_.size() || length > bytes_.size() - address) {
    damaged(fmt::format("{} bytes are wanted where the file has ended", length),
            std::min<uint64_t>(address, bytes_.size()));
  }
  return bytes_.substr(address, length);
}
uint64_t Hdf5Structure::number(uint64_t address, int bytes) const {
  const std::string_view raw = at(address, static_cast<uint64_t>(bytes));
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(raw[static_cast<size_t>(i)]);
  return value;
}
void Hdf5Structure::expect(uint64_t address, std::string_view signature) const {
  if (at(address, signature.size()) != signature) damaged(fmt::format("there is no {} here", signature), address);
}

Hdf5Structure::Hdf5Structure(std::string_view bytes) : bytes_(bytes) {
  if (bytes.starts_with("PK\x03\x04")) {
    unsupported(
        "it is a ZIP archive, as Keras's .keras files of whole models are; have Keras write the weights with "
        "model.save_weights('NAME.weights.h5')",
        0);
  }
  if (!bytes.starts_with(kHdf5Signature)) damaged("it does not begin as files of HDF5 do", 0);
  const uint64_t version = number(8, 1);
  if (version > 1) {
    unsupported(fmt::format("its superblock is of version {}: write it without libver='latest'", version), 8);
  }
  if (number(13, 1) != 8 || number(14, 1) != 8) unsupported("its addresses are not of 8 bytes", 13);
  const uint64_t addresses = version == 0 ? 24 : 28;
  if (number(addresses, 8) != 0) unsupported("its addresses do not count from its beginning", addresses);
  const uint64_t end = number(addresses + 16, 8);
  if (end > bytes.size())
    damaged(fmt::format("{} bytes long, it was written with {}", bytes.size(), end), addresses + 16);
  root_ = number(addresses + 32 + 8, 8);
}

// --- object headers ---

Hdf5Object Hdf5Structure::object(uint64_t address) const {
  if (at(address, 4) == "OHDR") unsupported("an object has a header of the newest format", address);
  if (number(address, 1) != 1) damaged("there is no object header here", address);
  Hdf5Object out;
  read_messages(address, out);
  return out;
}

void Hdf5Structure::read_messages(uint64_t address, Hdf5Object& out) const {
  struct Block {
    uint64_t begin, length;
  };
  std::vector<Block> blocks{{address + 16, number(address + 8, 4)}};
  bool has_layout = false;
  uint64_t total = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block block = blocks[i];
    total += block.length;
    if (i > kMaxBlocks || total > bytes_.size()) damaged("an object header goes on without an end", address);
    at(block.begin, block.length);
    for (uint64_t p = 0; p + 8 <= block.length;) {
      const uint64_t message = block.begin + p;
      const auto type = static_cast<int>(number(message, 2));
      const uint64_t size = number(message + 2, 2);
      if (size > block.length - p - 8) damaged("a message of an object header is longer than its block", message);
      if (type == kContinuation) {
        if (size < 16) damaged("a continuation without an address", message);
        blocks.push_back({number(message + 8, 8), number(message + 16, 8)});
      } else {
        const bool is_shared = (number(message + 4, 1) & kSharedMessage) != 0;
        if (is_shared && type != kNil) unsupported("an object shares its type with others (a named type)", message);
        read_message(type, message + 8, size, out, has_layout);
      }
      p += 8 + size;
    }
  }
  out.is_array = has_layout;
  if (out.is_array && out.is_group) damaged("an object is a group and an array", address);
}

void Hdf5Structure::read_message(int type, uint64_t address, uint64_t size, Hdf5Object& out, bool& has_layout) const {
  switch (type) {
    case kDataspace: return read_shape(address, size, out.value);
    case kDatatype: out.value.elements = elements_at(address, size); return;
    case kLayout: has_layout = true; return read_layout(address, size, out);
    case kAttribute: return read_attribute(address, size, out);
    case kSymbolTable:
      if (size < 16) damaged("a group without addresses", address);
      out.is_group = true;
      out.tree = number(address, 8);
      out.heap = number(address + 8, 8);
      return;
    case kLink:
    case kLinkInfo:
    case kAttributeInfo: unsupported("links or attributes are kept in the newest format", address);
    case kFilters: unsupported("an array is compressed: write it without compression", address);
    default: return;  // fill values, times, comments
  }
}

void Hdf5Structure::read_layout(uint64_t address, uint64_t size, Hdf5Object& out) const {
  if (size < 2) damaged("an array's layout is cut short", address);
  const uint64_t version = number(address, 1), kind = number(address + 1, 1);
  if (version < 3 || version > 4) unsupported(fmt::format("an array's layout is of version {}", version), address);
  if (kind == 0) {
    if (size < 4 || number(address + 2, 2) > size - 4) damaged("an array is longer than its message", address);
    out.bytes = at(address + 4, number(address + 2, 2));
  } else if (kind == 1) {
    if (size < 18) damaged("an array's layout is cut short", address);
    const uint64_t begin = number(address + 2, 8);
    if (begin != kNowhere) out.bytes = at(begin, number(address + 10, 8));
  } else {
    unsupported("an array is kept in chunks or in other files: write it in one piece", address);
  }
}

void Hdf5Structure::read_attribute(uint64_t address, uint64_t size, Hdf5Object& out) const {
  if (size < 8) damaged("an attribute is cut short", address);
  const uint64_t version = number(address, 1);
  if (version < 1 || version > 3) damaged(fmt::format("an attribute of version {}", version), address);
  const auto length = [&](uint64_t n) { return version == 1 ? padded(n) : n; };
  const uint64_t name_size = number(address + 2, 2), type_size = number(address + 4, 2),
                 shape_size = number(address + 6, 2);
  const uint64_t head = version == 3 ? 9 : 8;
  const uint64_t name = address + head, type = name + length(name_size), shape = type + length(type_size);
  const uint64_t data = shape + length(shape_size);
  if (data - address > size) damaged("an attribute is longer than its message", address);
  Hdf5Object::Attribute attribute;
  const std::string_view text = at(name, name_size);
  attribute.name = text.substr(0, std::min(text.find('\0'), text.size()));
  if (version > 1 && (number(address + 1, 1) & 3) != 0) {
    unsupported(fmt::format("attribute '{}' shares its type with others", attribute.name), address);
  }
  attribute.value.elements = elements_at(type, type_size);
  read_shape(shape, shape_size, attribute.value);
  attribute.bytes = at(data, address + size - data);
  out.attributes.push_back(std::move(attribute));
}

Hdf5Elements Hdf5Structure::elements_at(uint64_t address, uint64_t size) const {
  if (size < 8) damaged("a datatype is cut short", address);
  const auto type_class = static_cast<int>(number(address, 1) & 15);
  const uint64_t flags = number(address + 1, 1), bytes = number(address + 4, 4);
  Hdf5Elements out{.size = bytes};
  const bool whole = size >= 12 && number(address + 8, 2) == 0 && number(address + 10, 2) == bytes * 8;
  switch (type_class) {
    case kInteger:
      if (!is_number_size(bytes) || !whole) return out;
      out.kind = Hdf5Elements::Kind::number;
      out.dtype = fmt::format("{}int{}", (flags & 8) != 0 ? "" : "u", bytes * 8);
      out.big_endian = (flags & 1) != 0;
      return out;
    case kFloat: {
      if (!is_number_size(bytes) || bytes == 1 || !whole || size < 20 || (flags & 64) != 0) return out;
      // The bits of the exponent, of the mantissa, and the bias.
      const std::vector<uint64_t> bits{number(address + 13, 1), number(address + 15, 1), number(address + 16, 4)};
      const std::map<std::string, std::vector<uint64_t>> formats{
          {"float16", {5, 10, 15}}, {"bfloat16", {8, 7, 127}}, {"float32", {8, 23, 127}}, {"float64", {11, 52, 1023}}};
      for (const auto& [dtype, format] : formats) {
        if (format != bits || format[0] + format[1] + 1 != bytes * 8) continue;
        out.kind = Hdf5Elements::Kind::number;
        out.dtype = dtype;
        out.big_endian = (flags & 1) != 0;
      }
      return out;
    }
    case kText:
      if (bytes == 0) damaged("texts of no length", address);
      out.kind = Hdf5Elements::Kind::fixed_text;
      return out;
    case kEnum:  // h5py's bool: one byte with two names
      if (bytes != 1 || number(address + 1, 2) != 2) return out;
      out.kind = Hdf5Elements::Kind::number;
      out.dtype = "bool";
      return out;
    case kVariable:
      if ((flags & 15) != 1 || bytes != 16) return out;  // 0: lists
      out.kind = Hdf5Elements::Kind::variable_text;
      return out;
    default: return out;
  }
}

void Hdf5Structure::read_shape(uint64_t address, uint64_t size, Hdf5Value& out) const {
  if (size < 4) damaged("a shape is cut short", address);
  const uint64_t version = number(address, 1), rank = number(address + 1, 1);
  if (version < 1 || version > 2) damaged(fmt::format("a shape of version {}", version), address);
  if (version == 2 && number(address + 3, 1) == 2)
    unsupported("a value without a shape (HDF5's empty dataspace)", address);
  const uint64_t begin = version == 1 ? 8 : 4;
  if (rank > kMaxHdf5Rank || begin + rank * 8 > size) damaged(fmt::format("a shape of rank {}", rank), address);
  out.shape.clear();
  out.count = 1;
  bool is_empty = false;
  for (uint64_t i = 0; i < rank; ++i) {
    const uint64_t n = number(address + begin + i * 8, 8);
    if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      damaged("a shape larger than any array", address);
    out.shape.push_back(static_cast<int64_t>(n));
    is_empty = is_empty || n == 0;
    uint64_t product = 0;
    out.count = out.count && !__builtin_mul_overflow(*out.count, n, &product) ? std::optional(product) : std::nullopt;
  }
  if (is_empty) out.count = 0;
}

// --- groups ---

std::map<std::string, std::optional<uint64_t>> Hdf5Structure::children(const Hdf5Object& group) const {
  std::map<std::string, std::optional<uint64_t>> out;
  std::set<uint64_t> met;
  read_tree(group.tree, -1, group.heap, met, out);
  return out;
}

// `level` is that of the node, -1 where it is not known: of the first.
void Hdf5Structure::read_tree(uint64_t address, int level, uint64_t heap, std::set<uint64_t>& met,
                              std::map<std::string, std::optional<uint64_t>>& out) const {
  if (!met.insert(address).second) damaged("the tree of a group leads back to itself", address);
  expect(address, "TREE");
  const auto node_level = static_cast<int>(number(address + 5, 1));
  if (number(address + 4, 1) != 0 || (level > 0 && node_level != level - 1)) {
    damaged("a node of another tree stands in that of a group", address);
  }
  const uint64_t count = number(address + 6, 2);
  at(address + 24, count * 16 + 8);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t child = number(address + 24 + 8 + i * 16, 8);
    if (node_level == 0) {
      if (!met.insert(child).second) damaged("a group has the same names twice", child);
      read_symbols(child, heap, out);
    } else {
      read_tree(child, node_level, heap, met, out);
    }
  }
}

void Hdf5Structure::read_symbols(uint64_t address, uint64_t heap,
                                 std::map<std::string, std::optional<uint64_t>>& out) const {
  constexpr uint64_t kEntry = 40, kSymbolicLink = 2;
  expect(address, "SNOD");
  const uint64_t count = number(address + 6, 2);
  at(address + 8, count * kEntry);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t entry = address + 8 + i * kEntry;
    const bool leads_elsewhere = number(entry + 16, 4) == kSymbolicLink;
    const std::string name = name_in_heap(heap, number(entry, 8));
    const auto target = leads_elsewhere ? std::nullopt : std::optional(number(entry + 8, 8));
    if (!out.try_emplace(name, target).second) damaged(fmt::format("a group has '{}' twice", name), entry);
  }
}

std::string Hdf5Structure::name_in_heap(uint64_t heap, uint64_t offset) const {
  expect(heap, "HEAP");
  const std::string_view names = at(number(heap + 24, 8), number(heap + 8, 8));
  const size_t end = offset < names.size() ? names.find('\0', offset) : std::string_view::npos;
  if (end == std::string_view::npos || end == offset) damaged("a name of a group is not where it should be", heap);
  return std::string(names.substr(offset, end - offset));
}

// --- texts ---

std::vector<std::string> Hdf5Structure::texts(const Hdf5Value& value, std::string_view bytes) const {
  const auto where = static_cast<uint64_t>(bytes.data() - bytes_.data());
  const size_t size = value.elements.size;
  if (!value.count || *value.count > bytes.size() / size)
    damaged("a list of texts is longer than its attribute", where);
  std::vector<std::string> out;
  uint64_t total = 0;
  for (uint64_t i = 0; i < *value.count; ++i) {
    std::string_view text = bytes.substr(i * size, size);
    if (value.elements.kind == Hdf5Elements::Kind::variable_text) {
      const uint64_t element = where + i * size;
      const uint64_t length = number(element, 4), collection = number(element + 4, 8);
      if (length == 0) {
        out.emplace_back();
        continue;
      }
      const std::string_view in_heap = in_global_heap(collection, number(element + 12, 4));
      total += length;
      if (length > in_heap.size() || total > bytes_.size()) damaged("a text is longer than where it stands", element);
      text = in_heap.substr(0, length);
    }
    out.emplace_back(text.substr(0, std::min(text.find('\0'), text.size())));
  }
  return out;
}

std::string_view Hdf5Structure::in_global_heap(uint64_t collection, uint64_t index) const {
  expect(collection, "GCOL");
  const uint64_t size = number(collection + 8, 8);
  at(collection, size);
  for (uint64_t p = 16; size >= 16 && p + 16 <= size;) {
    const uint64_t object = collection + p, id = number(object, 2), length = number(object + 8, 8);
    if (id == 0) break;  // free space, to the end
    if (length > size - p - 16) damaged("a text reaches out of the heap of texts", object);
    if (id == index) return at(object + 16, length);
    p += 16 + padded(length);
  }
  damaged(fmt::format("text {} is not in the heap of texts", index), collection);
}

}  // namespace runnel::io
