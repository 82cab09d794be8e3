#pragma once

// Files and serialized values as tensors, as tf.io has them.
#include <string>
#include <vector>

#include "runnel/op/operand.h"

namespace runnel::io {

// A tensor as the bytes of TensorFlow's TensorProto (a string scalar), and back; the dtype must be the one written.
RUNNEL_API Tensor serialize_tensor(const Operand& tensor);
RUNNEL_API Tensor parse_tensor(const Operand& serialized, DType out_type);

// The bytes of each string as numbers: one dimension more, as long as all strings are. With fixed_length (in bytes)
// longer strings are cut and shorter ones filled up with zero bytes.
RUNNEL_API Tensor decode_raw(const Operand& input_bytes, DType out_type, bool little_endian = true,
                             int64_t fixed_length = -1);

// Whole files. write_file makes missing folders and empties what was there first.
RUNNEL_API Tensor read_file(const Operand& filename);
RUNNEL_API void write_file(const Operand& filename, const Operand& contents);
// The files that fit one or more patterns (*, ?, [a-z]), sorted.
RUNNEL_API Tensor matching_files(const Operand& pattern);

struct DecodeCsvOptions {
  std::string field_delim = ",";
  bool use_quote_delim = true;
  std::string na_value = {};              // text that counts as no value, beside ""
  std::vector<int64_t> select_cols = {};  // columns to read, rising; empty: all
};
// Records of comma-separated text, any shape, as one tensor per column. record_defaults gives the dtypes (float32,
// float64, int32, int64, string) and, where not empty ({}), the value of empty fields: a column without one must be
// filled.
RUNNEL_API std::vector<Tensor> decode_csv(const Operand& records, const std::vector<Tensor>& record_defaults,
                                          const DecodeCsvOptions& options = {});

}  // namespace runnel::io
