#include "runnel/io/example_locator.h"

#include <cstring>

namespace runnel::io {
namespace {

constexpr size_t max_places = 4096;  // bounds what is remembered of hostile records

// Keys are short: a call of memcmp would cost more than the comparison.
inline bool same(std::string_view a, const std::string& b) {
  const size_t n = a.size();
  if (n != b.size()) return false;
  const char *x = a.data(), *y = b.data();
  if (n > 16) return std::memcmp(x, y, n) == 0;
  if (n >= 8) {  // the first and the last eight, which may overlap
    return load_fixed64(x) == load_fixed64(y) && load_fixed64(x + n - 8) == load_fixed64(y + n - 8);
  }
  if (n >= 4) return load_fixed32(x) == load_fixed32(y) && load_fixed32(x + n - 4) == load_fixed32(y + n - 4);
  for (size_t i = 0; i < n; ++i) {
    if (x[i] != y[i]) return false;
  }
  return true;
}

}  // namespace

ExampleLocator::ExampleLocator(const std::vector<std::string_view>& keys) : keys_(keys.begin(), keys.end()) {
  for (size_t i = 0; i < keys_.size(); ++i) slots_.emplace(keys_[i], static_cast<int>(i));
}

int ExampleLocator::learn(std::string_view key, size_t place) {
  const auto it = slots_.find(key);
  const int slot = it == slots_.end() ? -1 : it->second;
  if (place < max_places && key.size() <= 256) {
    if (expected_.size() <= place) expected_.resize(place + 1, {"", slots_.contains("") ? slots_.at("") : -1});
    expected_[place] = {std::string(key), slot};
  }
  return slot;
}

bool ExampleLocator::locate(std::string_view example, Found* found) {
  for (size_t i = 0; i < keys_.size(); ++i) found[i] = {wire::Kind::none, {}};
  size_t place = 0;
  return wire::visit_features(example, [&](std::string_view key, wire::Kind kind, std::string_view list) {
    const bool known = place < expected_.size() && same(key, expected_[place].key);
    const int slot = known ? expected_[place].slot : learn(key, place);
    ++place;
    if (slot >= 0) found[slot] = {kind, list};
  });
}

}  // namespace runnel::io
