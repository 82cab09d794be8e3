#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace runnel::tools {

// One line; bytes that are no UTF-8 become U+FFFD.
inline void print_json(const nlohmann::ordered_json& json) {
  const std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

}  // namespace runnel::tools
