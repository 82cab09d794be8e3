#include "runnel/board/request.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "runnel/base/format.h"

namespace runnel::board {
namespace {

// Shown in messages: what came from outside, cut.
std::string shown(const std::string& text) { return text.substr(0, 60); }

int64_t whole_number(const std::string& name, std::string_view text, int64_t low, int64_t high) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || v < low || v > high) {
    throw invalid_argument("the parameter {}={} is no whole number from {} to {}", name, shown(std::string(text)), low,
                           high);
  }
  return v;
}

}  // namespace

const std::string* Request::find(const std::string& name) const {
  const auto at = parameters.find(name);
  return at == parameters.end() ? nullptr : &at->second;
}

const std::string& Request::text(const std::string& name) const {
  const std::string* found = find(name);
  if (found == nullptr) throw invalid_argument("the parameter {} is missing", name);
  return *found;
}

std::vector<uint32_t> Request::ids(const std::string& name, size_t most) const {
  const std::string& list = text(name);
  std::vector<uint32_t> ids;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (ids.size() == most) throw invalid_argument("the parameter {} names more than {} at once", name, most);
    ids.push_back(
        static_cast<uint32_t>(whole_number(name, std::string_view(list).substr(begin, end - begin), 0, UINT32_MAX)));
    begin = end + 1;
  }
  return ids;
}

uint32_t Request::id(const std::string& name) const {
  return static_cast<uint32_t>(whole_number(name, text(name), 0, UINT32_MAX));
}

int64_t Request::number(const std::string& name, int64_t otherwise, int64_t low, int64_t high) const {
  const std::string* found = find(name);
  return found == nullptr ? otherwise : whole_number(name, *found, low, high);
}

Response error_response(int status, const std::string& message) {
  const nlohmann::json json = {{"error", message}};
  return {.status = status, .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace runnel::board
