#pragma once

// Internal: protobuf's text format, as far as flat messages of strings and numbers need it.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/base/function_ref.h"

namespace runnel::io {

// In quotes, with what is not ASCII as \ooo.
std::string text_proto_string(std::string_view text);

//   while (auto field = reader.field()) reader.values([&] { ... reader.string() or reader.number() ... });
class TextProtoReader {
 public:
  explicit TextProtoReader(std::string_view text) : text_(text) {}

  std::optional<std::string> field();         // the next field's name; nothing at the end
  void values(FunctionRef<void()> read_one);  // of one field: one, or several in [ ]
  std::string string();
  double number();
  Error bad(const std::string& what) const;  // with the line

 private:
  void skip_space();
  bool accept(char c);
  std::string quoted();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace runnel::io
