#include "runnel/io/example_locator.h"

#include <cstring>

namespace runnel::io {
namespace {

constexpr size_t max_places = 4096;  // bounds what is remembered of hostile records

bool same(std::string_view a, const std::string& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

ExampleLocator::ExampleLocator(const std::vector<std::string_view>& keys) : keys_(keys.begin(), keys.end()) {
  for (size_t i = 0; i < keys_.size(); ++i) slots_.emplace(keys_[i], static_cast<int>(i));
}

int ExampleLocator::slot_of(std::string_view key, size_t place) {
  if (place < expected_.size() && same(key, expected_[place].key)) [[likely]]
    return expected_[place].slot;
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
    const int slot = slot_of(key, place++);
    if (slot >= 0) found[slot] = {kind, list};
  });
}

}  // namespace runnel::io
