#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/io/wire.h"

namespace runnel::io {

// Finds wanted features in serialized Examples without building anything. Records of one file mostly have the same keys
// in the same order, so the key found at a place the last time is tried first. Used by one thread at a time.
class RUNNEL_API ExampleLocator {
 public:
  explicit ExampleLocator(const std::vector<std::string_view>& keys);  // distinct

  struct Found {
    wire::Kind kind;        // none: missing, or without a list
    std::string_view list;  // the serialized list message
  };
  size_t size() const { return keys_.size(); }
  bool has_keys(const std::vector<std::string_view>& keys) const {
    return std::equal(keys.begin(), keys.end(), keys_.begin(), keys_.end());
  }
  // Fills found[0 .. size()). False: the bytes are damaged or unusual; Example::parse(example).serialize() either tells
  // what is wrong or gives bytes that can be located.
  bool locate(std::string_view example, Found* found);

 private:
  struct Expected {
    std::string key;
    int slot;
  };
  int learn(std::string_view key, size_t place);  // what stands at a place; gives its slot

  std::vector<std::string> keys_;
  std::unordered_map<std::string_view, int> slots_;
  std::vector<Expected> expected_;
};

}  // namespace runnel::io
