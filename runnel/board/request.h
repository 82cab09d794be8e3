#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::board {

// What a browser asks, apart from how it came.
struct RUNNEL_API Request {
  std::string method = "GET";
  std::string path;
  std::multimap<std::string, std::string> parameters;
  std::string host, origin, fetch_site;  // of the headers

  const std::string* find(const std::string& name) const;  // null: not given
  const std::string& text(const std::string& name) const;  // an Error (invalid_argument) where it is missing
  std::vector<uint32_t> ids(const std::string& name, size_t most) const;  // "1,2,3"
  uint32_t id(const std::string& name) const;
  // The number, or `otherwise` where it is not given; an Error where it is no number of that range.
  int64_t number(const std::string& name, int64_t otherwise, int64_t low = INT64_MIN, int64_t high = INT64_MAX) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Where it is set, the body is what it appends, call by call, until it says false.
  std::function<bool(std::string& more)> stream;
};

RUNNEL_API Response error_response(int status, const std::string& message);

}  // namespace runnel::board
