#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace runnel::tools {

using Json = nlohmann::ordered_json;

// One line; bytes that are no UTF-8 become U+FFFD.
inline void print_json(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

// Bytes as C would write them.
inline std::string escaped(std::string_view bytes) {
  std::string text;
  for (char c : bytes) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '\n')
      text += "\\n";
    else if (c == '\\' || c == '"')
      text += fmt::format("\\{}", c);
    else if (u >= 0x20 && u < 0x7f)
      text += c;
    else
      text += fmt::format("\\x{:02x}", u);
  }
  return text;
}

}  // namespace runnel::tools
