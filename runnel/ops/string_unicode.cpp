// Characters of UTF-8 text.
#include "runnel/base/format.h"
#include "runnel/base/utf8.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/string_kernels.h"
#include "runnel/ops/strings.h"

namespace runnel {
namespace {

struct DecodeAttrs {
  std::string input_encoding = "UTF-8";
  std::string errors = "replace";
  int64_t replacement_char = 0xFFFD;
  bool replace_control_characters = false;
  DType Tsplits = DType::int64;
  static constexpr auto fields() {
    using A = DecodeAttrs;
    return field_list(field("input_encoding", &A::input_encoding, {.required = true}),
                      field("errors", &A::errors, {.texts = "strict|replace|ignore"}),
                      field("replacement_char", &A::replacement_char),
                      field("replace_control_characters", &A::replace_control_characters),
                      field("Tsplits", &A::Tsplits, {.types = index_types.mask}));
  }
};
void check_replacement(int64_t c) {
  if (c < 0 || c > 0x10FFFF) throw invalid_argument("replacement_char must be a Unicode code point, got {}", c);
}

TextEncoding decoded_encoding(const std::string& name) {
  if (name == "UTF-8") return TextEncoding::utf8;
  if (name == "UTF-16-BE") return TextEncoding::utf16_be;
  if (name == "UTF-32-BE") return TextEncoding::utf32_be;
  if (name == "ISO-8859-1") return TextEncoding::latin1;
  if (name == "US-ASCII") return TextEncoding::ascii;
  throw invalid_argument("input_encoding must be UTF-8, UTF-16-BE, UTF-32-BE, ISO-8859-1 or US-ASCII, got '{}'", name);
}

void decode_kernel(KernelContext& c, const DecodeAttrs& a) {
  check_replacement(a.replacement_char);
  const TextEncoding encoding = decoded_encoding(a.input_encoding);
  std::vector<int64_t> splits{0};
  std::vector<int32_t> values;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < c.in(0).num_elements(); ++i) {
    const std::string_view all = c.in<Bytes>(0)[i];
    for (size_t at = 0; at < all.size();) {
      const CodePoint p = decode_text(all.substr(at), encoding);
      const bool control = a.replace_control_characters && p.value <= 0x1F;
      if (!p.valid && a.errors == "strict") {
        throw invalid_argument("string {} is no {} at byte {}", i, a.input_encoding, at);
      }
      if (p.valid || a.errors != "ignore") {
        values.push_back(
            static_cast<int32_t>(p.valid && !control ? p.value : static_cast<uint32_t>(a.replacement_char)));
        starts.push_back(static_cast<int64_t>(at));
      }
      at += static_cast<size_t>(p.bytes);
    }
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  c.forward(0, a.Tsplits == DType::int64 ? Tensor::of<int64_t>(splits)
                                         : Tensor::of<int32_t>(std::vector<int32_t>(splits.begin(), splits.end())));
  c.forward(1, Tensor::of<int32_t>(values));
  c.forward(2, Tensor::of<int64_t>(starts));
}

}  // namespace

void register_string_unicode(Registry& r) {
  r.define<DecodeAttrs>("UnicodeDecodeWithOffsets")
      .in("input", DType::string)
      .out("row_splits", "Tsplits")
      .out("char_values", DType::int32)
      .out("char_to_byte_starts", DType::int64)
      .shape([](InferContext& c) {
        for (int i = 0; i < 3; ++i) c.output(i, PartialShape{kUnknownDim});
      })
      .cpu([](KernelContext& c, const DecodeAttrs& a) { decode_kernel(c, a); })
      .doc("The code points of each string, one after the other, with where each starts.")
      .sample({.in = {Tensor{"h\xc3\xa9", "", "\xf0\x9f\x98\x80"}},
               .out = {Tensor{int64_t{0}, int64_t{2}, int64_t{2}, int64_t{3}}, Tensor{0x68, 0xe9, 0x1f600},
                       Tensor{int64_t{0}, int64_t{1}, int64_t{0}}}})
      // A character that breaks off is replaced once, whatever its bytes.
      .sample(
          {.in = {Tensor{"\xe2\x82z"}}, .out = {Tensor{0, 2}, Tensor{0xfffd, 0 + 'z'}, Tensor{int64_t{0}, int64_t{2}}}},
          {.Tsplits = DType::int32})
      .sample({.in = {Tensor::of<Bytes>({Bytes(std::string("\0A\xd8\x3d\xde\0", 6))})},
               .out = {Tensor{int64_t{0}, int64_t{2}}, Tensor{'A' + 0, 0x1f600}, Tensor{int64_t{0}, int64_t{2}}}},
              {.input_encoding = "UTF-16-BE"})
      .sample({.in = {Tensor{"h\xe9"}},
               .out = {Tensor{int64_t{0}, int64_t{2}}, Tensor{'h' + 0, 0xe9}, Tensor{int64_t{0}, int64_t{1}}}},
              {.input_encoding = "ISO-8859-1"})
      .sample({.in = {Tensor{"a"}}, .error = "must be UTF-8"}, {.input_encoding = "UTF-7"});
}

namespace strings {
namespace {

std::vector<Tensor> decode(const Operand& input) {
  static const Op<DecodeAttrs> op("UnicodeDecodeWithOffsets");
  return op.many({reshape(input, {-1})});
}

}  // namespace

RaggedTensor unicode_decode(const Operand& input) {
  return composed(input.where(), [&]() -> RaggedTensor {
    const auto parts = decode(input);
    return ragged_over(input.value().partial_shape(), parts[1], parts[0]);
  });
}

RaggedTensor unicode_split(const Operand& input) {
  return composed(input.where(), [&]() -> RaggedTensor {
    const auto parts = decode(input);
    std::vector<Bytes> characters;
    for (int32_t c : parts[1].host<int32_t>()) {
      std::string text;
      append_utf8(static_cast<uint32_t>(c), text);
      characters.emplace_back(std::move(text));
    }
    return ragged_over(input.value().partial_shape(), Tensor::of<Bytes>(characters), parts[0]);
  });
}

}  // namespace strings
}  // namespace runnel
