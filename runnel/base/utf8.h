#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runnel/base/export.h"

namespace runnel {

struct CodePoint {
  uint32_t value;  // U+FFFD for bytes that are no UTF-8
  int bytes;       // how many were read, at least 1
  bool valid;
};

// The first character of `text`, which is not empty. Overlong forms, surrogates and values past U+10FFFF are invalid;
// of a character that breaks off, as many bytes are read as could have begun one.
RUNNEL_API CodePoint decode_utf8(std::string_view text);
// Every letter in upper or lower case, by Unicode's full mappings (sharp s becomes SS, a sigma at the end of a word the
// final one); U+FFFD in the place of bytes that are no UTF-8.
RUNNEL_API std::string utf8_upper(std::string_view text);
RUNNEL_API std::string utf8_lower(std::string_view text);
RUNNEL_API void append_utf8(uint32_t code_point, std::string& out);
// Bytes that start a character, which is how TensorFlow counts UTF8_CHAR.
RUNNEL_API int64_t utf8_length(std::string_view text);

}  // namespace runnel
