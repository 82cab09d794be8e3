#pragma once

#include <string>
#include <vector>

#include "runnel/op/operand.h"
#include "runnel/tensor/composite.h"

namespace runnel::strings {

enum class Unit { byte, utf8_char };

// Corresponding strings of every input, one after the other; scalars go with every element.
RUNNEL_API Tensor join(const OperandList& inputs, const std::string& separator = "");
// The pieces between separators; without one, between runs of white space.
RUNNEL_API RaggedTensor split(const Operand& input, const std::string& sep = "", int64_t maxsplit = -1);
RUNNEL_API Tensor length(const Operand& input, Unit unit = Unit::byte);
// `len` units from `pos` on (negative: from the end); pos and len broadcast with the input.
RUNNEL_API Tensor substr(const Operand& input, const Operand& pos, const Operand& len, Unit unit = Unit::byte);
// ASCII letters; with encoding "utf-8" all of them.
RUNNEL_API Tensor lower(const Operand& input, const std::string& encoding = "");
RUNNEL_API Tensor upper(const Operand& input, const std::string& encoding = "");
RUNNEL_API Tensor strip(const Operand& input);

// RE2 syntax; a bad pattern is an Error.
RUNNEL_API Tensor regex_full_match(const Operand& input, const Operand& pattern);
RUNNEL_API Tensor regex_replace(const Operand& input, const Operand& pattern, const Operand& rewrite,
                                bool replace_global = true);

RUNNEL_API Tensor to_number(const Operand& input, DType out_type = DType::float32);
struct AsStringOptions {
  int64_t precision = -1;
  bool scientific = false;
  bool shortest = false;
  int64_t width = -1;
  std::string fill = {};  // "", "0", " ", "+" or "-", as printf's flags
};
RUNNEL_API Tensor as_string(const Operand& input, const AsStringOptions& options = {});
// The template with each placeholder replaced by the text of an input, as print shows it.
RUNNEL_API Tensor format(const std::string& text, const OperandList& inputs, const std::string& placeholder = "{}",
                         int64_t summarize = 3);

// One string per character of UTF-8 text; bytes that are no UTF-8 become U+FFFD.
RUNNEL_API RaggedTensor unicode_split(const Operand& input);
RUNNEL_API RaggedTensor unicode_decode(const Operand& input);  // code points

}  // namespace runnel::strings
