#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runnel/base/error.h"
#include "runnel/io/example.h"
#include "runnel/io/example_locator.h"

using namespace runnel::io;

namespace {

// NaNs are equal to themselves here: bits count.
bool same(const Example& a, const Example& b) { return a.serialize() == b.serialize(); }

void check_located(const Example& expected, const std::vector<std::string_view>& keys,
                   const std::vector<ExampleLocator::Found>& found) {
  for (size_t k = 0; k < keys.size(); ++k) {
    const auto it = expected.features.feature.find(std::string(keys[k]));
    const size_t kind = it == expected.features.feature.end() ? 0 : it->second.kind.index();
    if (static_cast<size_t>(found[k].kind) != kind) std::abort();
    if (kind != 3) continue;
    std::vector<int64_t> values(it->second.int64_list()->value.size());
    const auto n = static_cast<int64_t>(values.size());
    if (wire::read_int64s(found[k].list, values.data(), n) != n || values != it->second.int64_list()->value)
      std::abort();
  }
}

}  // namespace

// Bytes as an Example: an Error, or a value that serializes to bytes that mean the same; and the fast way of finding
// features agrees with the general parser. The same bytes as a SequenceExample.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const std::vector<std::string_view> keys = {"a", "b", "id", "label"};
  ExampleLocator locator(keys);
  std::vector<ExampleLocator::Found> found(keys.size());
  const bool located = locator.locate(bytes, found.data());
  try {
    const Example example = Example::parse(bytes);
    if (located) check_located(example, keys, found);
    const std::string normal = example.serialize();
    if (!same(Example::parse(normal), example)) std::abort();
    if (!locator.locate(normal, found.data())) std::abort();
    check_located(example, keys, found);
    example_to_json(example);
  } catch (const runnel::Error&) {
  }
  try {
    const SequenceExample sequence = SequenceExample::parse(bytes);
    if (SequenceExample::parse(sequence.serialize()).serialize() != sequence.serialize()) std::abort();
  } catch (const runnel::Error&) {
  }
  return 0;
}
