#pragma once

// Internal: what stands in a file of HDF5, read with every size and address checked: libhdf5 itself writes past its
// memory for damaged files. These are the structures that h5py and libhdf5 make unless asked for their newest format:
// superblock 0 or 1, object headers of version 1, groups as symbol tables, arrays in one piece.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/env.h"

namespace runnel::io {

// What is wrong with a file, and where; the reader makes an Error of it.
struct Hdf5Fault {
  std::string what;
  uint64_t at;
  bool unsupported = false;  // no damage: something that is not read
};

// A value of an array or an attribute: how its elements look, and their bytes.
struct Hdf5Elements {
  enum class Kind { number, fixed_text, variable_text, other };
  Kind kind = Kind::other;
  std::string dtype;        // of numbers
  bool big_endian = false;  // numbers
  size_t size = 0;          // bytes of an element
};
struct Hdf5Value {
  Hdf5Elements elements;
  std::vector<int64_t> shape;
  std::optional<uint64_t> count;  // of elements; none where it is larger than any number
};

struct Hdf5Object {
  bool is_group = false;
  uint64_t tree = 0, heap = 0;  // of groups
  bool is_array = false;
  Hdf5Value value;         // of arrays
  std::string_view bytes;  // of its elements
  struct Attribute {
    std::string name;
    Hdf5Value value;
    std::string_view bytes;
  };
  std::vector<Attribute> attributes;
};

class Hdf5Structure {
 public:
  // The bytes must live as long. Throws Hdf5Fault, as everything below.
  explicit Hdf5Structure(std::string_view bytes);

  uint64_t root() const { return root_; }  // addresses of object headers
  Hdf5Object object(uint64_t address) const;
  // What is in a group. A link that leads elsewhere has no address.
  std::map<std::string, std::optional<uint64_t>> children(const Hdf5Object& group) const;
  // The elements of an attribute of texts.
  std::vector<std::string> texts(const Hdf5Value& value, std::string_view bytes) const;

 private:
  std::string_view at(uint64_t address, uint64_t length) const;
  uint64_t number(uint64_t address, int bytes) const;
  void expect(uint64_t address, std::string_view signature) const;
  void read_messages(uint64_t address, Hdf5Object& out) const;
  void read_message(int type, uint64_t address, uint64_t size, Hdf5Object& out, bool& has_layout) const;
  void read_layout(uint64_t address, uint64_t size, Hdf5Object& out) const;
  void read_attribute(uint64_t address, uint64_t size, Hdf5Object& out) const;
  Hdf5Elements elements_at(uint64_t address, uint64_t size) const;
  void read_shape(uint64_t address, uint64_t size, Hdf5Value& out) const;
  void read_tree(uint64_t address, int level, uint64_t heap, std::set<uint64_t>& met,
                 std::map<std::string, std::optional<uint64_t>>& out) const;
  void read_symbols(uint64_t address, uint64_t heap, std::map<std::string, std::optional<uint64_t>>& out) const;
  std::string name_in_heap(uint64_t heap, uint64_t offset) const;
  std::string_view in_global_heap(uint64_t collection, uint64_t index) const;

  std::string_view bytes_;
  uint64_t root_ = 0;
};

}  // namespace runnel::io
