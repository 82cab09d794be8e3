#pragma once

// Shared by the string families.
#include <string_view>
#include <vector>

#include "runnel/base/utf8.h"
#include "runnel/op/context.h"
#include "runnel/tensor/composite.h"

namespace runnel {

// out[i] = f(in[i]) for strings.
template <class F>
void for_each_string(KernelContext& c, F f) {
  for (int64_t i = 0; i < c.out().num_elements(); ++i) c.out<Bytes>()[i] = f(c.in<Bytes>(0)[i]);
}

enum class TextEncoding { utf8, utf16_be, utf16_le, utf32_be, utf32_le, latin1, ascii };

bool is_code_point(int64_t c);  // a value that a character has: no surrogate
// The character at the start of `text`, which is not empty. Of what is none, or breaks off, as many bytes are read as
// ICU, and so TensorFlow, replaces by one character.
CodePoint decode_text(std::string_view text, TextEncoding encoding);

// For each element of the broadcast shape `out`, the position of the operand's element that goes there.
std::vector<int64_t> broadcast_positions(const Shape& operand, const Shape& out);

// Rows of `values` cut by `splits`, one row per element of a tensor of shape `outer`: ragged in as many
// dimensions as that takes. In a graph, a matrix or more must have known sizes.
RaggedTensor ragged_over(const PartialShape& outer, const Tensor& values, const Tensor& splits);

}  // namespace runnel
