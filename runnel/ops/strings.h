#pragma once

#include <string>
#include <vector>

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"
#include "runnel/tensor/composite.h"

namespace runnel::strings {

enum class Unit { byte, utf8_char };

// Corresponding strings of every input, one after the other; scalars go with every element.
RUNNEL_API Tensor join(const OperandList& inputs, const std::string& separator = "");
// The strings along axes joined, the first axis named first; without axes all of them in their order.
RUNNEL_API Tensor reduce_join(const Operand& inputs, const Axes& axis = {}, bool keepdims = false,
                              const std::string& separator = "");
// String i is those with segment id i joined in their order; the ids cover the leading dimensions of the inputs.
RUNNEL_API Tensor unsorted_segment_join(const Operand& inputs, const Operand& segment_ids, const Operand& num_segments,
                                        const std::string& separator = "");
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
// Rows of code points as strings: UTF-8, UTF-16-BE or UTF-32-BE. What is no character is an Error with errors "strict",
// is left out with "ignore", and becomes replacement_char with "replace".
RUNNEL_API Tensor unicode_encode(const RaggedTensor& input, const std::string& output_encoding,
                                 const std::string& errors = "replace", int64_t replacement_char = 0xFFFD,
                                 SourceSite where = SourceSite::current());
RUNNEL_API Tensor unicode_encode(const Operand& input, const std::string& output_encoding,
                                 const std::string& errors = "replace", int64_t replacement_char = 0xFFFD);
struct TranscodeOptions {
  std::string errors = "replace";
  int64_t replacement_char = 0xFFFD;
  bool replace_control_characters = false;  // those below U+0020
};
// Input may also be UTF-16-LE, UTF-32-LE, ISO-8859-1 and US-ASCII.
RUNNEL_API Tensor unicode_transcode(const Operand& input, const std::string& input_encoding,
                                    const std::string& output_encoding, const TranscodeOptions& options = {});

// A number in [0, num_buckets) for each string, the same on every machine. The strong one has a key of two integers:
// who does not know it cannot find strings that collide.
RUNNEL_API Tensor to_hash_bucket(const Operand& input, int64_t num_buckets);
RUNNEL_API Tensor to_hash_bucket_fast(const Operand& input, int64_t num_buckets);
RUNNEL_API Tensor to_hash_bucket_strong(const Operand& input, int64_t num_buckets, const std::vector<int64_t>& key);

}  // namespace runnel::strings

namespace runnel::io {

// Bytes in web-safe base64 (- and _ in place of + and /), and back.
RUNNEL_API Tensor encode_base64(const Operand& input, bool pad = false);
RUNNEL_API Tensor decode_base64(const Operand& input);

}  // namespace runnel::io
