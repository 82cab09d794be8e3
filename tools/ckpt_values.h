#pragma once

// The elements of a tensor of a checkpoint, as text and numbers.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/tensor/dtype.h"
#include "tools/printing.h"

namespace runnel::tools {

// The dtype whose elements have the same bytes and mean the same numbers: quantized ones are integers. Nothing for
// those that have none (variants, 8-bit floats).
std::optional<DType> element_type(int checkpoint_dtype);

// As NumPy prints it.
std::string values_text(DType dtype, const std::vector<int64_t>& shape, ByteSpan bytes);
std::string strings_text(const std::vector<int64_t>& shape, const std::vector<std::string>& strings);
// Row by row in one list; complex numbers as [real, imaginary], what JSON has no number for as "nan", "inf", "-inf".
Json values_json(DType dtype, ByteSpan bytes);
// NumPy's file; bfloat16, which NumPy has not, as float32.
std::vector<std::byte> npy_bytes(DType dtype, const std::vector<int64_t>& shape, ByteSpan bytes);

struct ValueDifference {
  uint64_t elements = 0;  // that differ
  double largest = 0;     // NaN where a number meets one
};
// Of equally many elements; equal bits and equal numbers do not differ.
ValueDifference difference(DType dtype, ByteSpan a, ByteSpan b);
Json number_json(double value);

}  // namespace runnel::tools
