#include "runnel/ops/string_kernels.h"

#include <algorithm>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/broadcast.h"

namespace runnel {

namespace {

constexpr size_t kBlockOfStrings = 1 << 15;  // bytes, about
constexpr size_t kLongString = 1 << 12;      // has memory of its own
constexpr size_t kSharedPart = 256;          // bytes that are shared rather than copied

}  // namespace

void StringWriter::end() {
  const size_t begin = waiting_.empty() ? 0 : waiting_.back().end;
  if (text_.size() - begin < kLongString) {
    waiting_.push_back({out_++, text_.size()});
    if (text_.size() >= kBlockOfStrings) flush();
    return;
  }
  Bytes* to = out_++;
  if (begin == 0) {
    *to = Bytes(std::move(text_));
    text_.clear();
    return;
  }
  *to = Bytes(text_.substr(begin));
  text_.resize(begin);
}

void StringWriter::part(const Bytes& whole, size_t begin, size_t size) {
  if (size < kSharedPart) {
    text_.append(whole.view().substr(begin, size));
    return end();
  }
  *out_++ = whole.substr(begin, size);
}

void StringWriter::flush() {
  if (waiting_.empty()) return;
  auto block = std::make_shared_for_overwrite<char[]>(text_.size());
  std::copy(text_.begin(), text_.end(), block.get());
  const char* bytes = block.get();
  const std::shared_ptr<const void> owner = std::move(block);
  size_t begin = 0;
  for (const Waiting& w : waiting_) {
    *w.to = w.end > begin ? Bytes(owner, {bytes + begin, w.end - begin}) : Bytes();
    begin = w.end;
  }
  waiting_.clear();
  text_.clear();
}

bool is_code_point(int64_t c) { return c >= 0 && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF); }

namespace {

CodePoint no_character(size_t bytes) { return {0xFFFD, static_cast<int>(bytes), false}; }

// `bytes` bytes of a number.
uint32_t code_unit(std::string_view text, size_t bytes, bool big_endian) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(text[big_endian ? i : bytes - 1 - i]);
  return value;
}

CodePoint decode_utf16(std::string_view text, bool big_endian) {
  if (text.size() < 2) return no_character(text.size());
  const uint32_t first = code_unit(text, 2, big_endian);
  if (first < 0xD800 || first > 0xDFFF) return {first, 2, true};
  if (first > 0xDBFF) return no_character(2);
  if (text.size() < 4) return no_character(text.size());
  const uint32_t second = code_unit(text.substr(2), 2, big_endian);
  if (second < 0xDC00 || second > 0xDFFF) return no_character(2);
  return {0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), 4, true};
}

CodePoint decode_utf32(std::string_view text, bool big_endian) {
  if (text.size() < 4) return no_character(text.size());
  const uint32_t value = code_unit(text, 4, big_endian);
  return is_code_point(value) ? CodePoint{value, 4, true} : no_character(4);
}

}  // namespace

CodePoint decode_text(std::string_view text, TextEncoding encoding) {
  const auto first = static_cast<uint8_t>(text[0]);
  switch (encoding) {
    case TextEncoding::utf8: return decode_utf8(text);
    case TextEncoding::utf16_be: return decode_utf16(text, true);
    case TextEncoding::utf16_le: return decode_utf16(text, false);
    case TextEncoding::utf32_be: return decode_utf32(text, true);
    case TextEncoding::utf32_le: return decode_utf32(text, false);
    case TextEncoding::latin1: return {first, 1, true};
    case TextEncoding::ascii: return first < 0x80 ? CodePoint{first, 1, true} : no_character(1);
  }
  return no_character(1);
}

BroadcastPositions::BroadcastPositions(const Shape& operand, const Shape& out) {
  if (operand.num_elements() == 1) return;
  if (operand.num_elements() == out.num_elements()) {
    step_ = 1;
    return;
  }
  std::vector<int64_t> from(static_cast<size_t>(operand.num_elements()));
  table_.resize(static_cast<size_t>(out.num_elements()));
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int64_t>(i);
  cpu::broadcast_to(from.data(), operand.dims(), table_.data(), out.dims(), sizeof(int64_t));
}

RaggedTensor ragged_over(const PartialShape& outer, const Tensor& values, const Tensor& splits) {
  if (!outer.has_rank() || (outer.rank() > 1 && !outer.is_static())) {
    throw invalid_argument(
        "the rows of strings of shape {} are not known while a graph is built: give input_signature "
        "their sizes",
        outer.str());
  }
  RaggedTensor ragged = RaggedTensor::from_row_splits(values, splits);
  // Dimensions before the last are regular: each adds evenly spaced splits around what there is.
  for (int d = outer.rank() - 1; d > 0; --d) {
    int64_t rows = 1;
    for (int i = 0; i < d; ++i) rows *= outer[i];
    std::vector<int64_t> even;
    for (int64_t i = 0; i <= rows; ++i) even.push_back(i * outer[d]);
    ragged = RaggedTensor::from_row_splits(ragged, Tensor::of<int64_t>(even));
  }
  return ragged;
}

}  // namespace runnel
