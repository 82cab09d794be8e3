#pragma once

// Shared by the string families.
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/parallel.h"
#include "runnel/base/utf8.h"
#include "runnel/op/context.h"
#include "runnel/tensor/composite.h"

namespace runnel {

inline constexpr int64_t kStringGrain = 256;  // strings per parallel chunk

// Writes strings of a tensor, one after the other. Short ones share blocks of memory: the few that outlive the others
// keep a block alive, which is small.
class StringWriter {
 public:
  explicit StringWriter(Bytes* out) : out_(out) {}
  // What is appended here before end() is the next string.
  std::string& text() { return text_; }
  void end();
  // A part of `whole` is the next string; it shares the bytes if they are many.
  void part(const Bytes& whole, size_t begin, size_t size);
  void flush();  // nothing is written before it

 private:
  struct Waiting {
    Bytes* to;
    size_t end;  // in text_
  };
  Bytes* out_;
  std::string text_;
  std::vector<Waiting> waiting_;
};

// f(i, writer) writes string i, in parallel chunks.
template <class F>
void write_strings(const Tensor& out, const F& f) {
  Bytes* to = out.mutable_data<Bytes>();
  parallel_for(out.num_elements(), kStringGrain, [&](int64_t begin, int64_t end) {
    StringWriter writer(to + begin);
    for (int64_t i = begin; i < end; ++i) f(i, writer);
    writer.flush();
  });
}
// f(in[i], text) appends string i to the text.
template <class F>
void for_each_string(KernelContext& c, const F& f) {
  const Bytes* in = c.in<Bytes>(0);
  write_strings(c.out(), [&](int64_t i, StringWriter& writer) {
    f(in[i], writer.text());
    writer.end();
  });
}
// out[i] = f(in[i]) for strings in and plain elements out.
template <class T, class F>
void for_each_number_of_string(KernelContext& c, const F& f) {
  const Bytes* in = c.in<Bytes>(0);
  T* out = c.out<T>();
  parallel_for(c.out().num_elements(), kStringGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = f(in[i]);
  });
}

enum class TextEncoding { utf8, utf16_be, utf16_le, utf32_be, utf32_le, latin1, ascii };

bool is_code_point(int64_t c);  // a value that a character has: no surrogate
// The character at the start of `text`, which is not empty. Of what is none, or breaks off, as many bytes are read as
// ICU, and so TensorFlow, replaces by one character.
CodePoint decode_text(std::string_view text, TextEncoding encoding);

// For each element of the broadcast shape `out`, the position of the operand's element that goes there.
class BroadcastPositions {
 public:
  BroadcastPositions(const Shape& operand, const Shape& out);
  int64_t operator[](int64_t i) const { return table_.empty() ? i * step_ : table_[static_cast<size_t>(i)]; }

 private:
  int64_t step_ = 0;
  std::vector<int64_t> table_;  // where there is no single step
};

// Rows of `values` cut by `splits`, one row per element of a tensor of shape `outer`: ragged in as many
// dimensions as that takes. In a graph, a matrix or more must have known sizes.
RaggedTensor ragged_over(const PartialShape& outer, const Tensor& values, const Tensor& splits);

}  // namespace runnel
