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
  static constexpr auto fields() {
    return field_list(field("input_encoding", &DecodeAttrs::input_encoding), field("errors", &DecodeAttrs::errors),
                      field("replacement_char", &DecodeAttrs::replacement_char),
                      field("replace_control_characters", &DecodeAttrs::replace_control_characters));
  }
};

}  // namespace

void register_string_unicode(Registry& r) {
  r.define<DecodeAttrs>("UnicodeDecodeWithOffsets")
      .in("input", DType::string)
      .out("row_splits", DType::int64)
      .out("char_values", DType::int32)
      .out("char_to_byte_starts", DType::int64)
      .shape([](InferContext& c) {
        for (int i = 0; i < 3; ++i) c.output(i, PartialShape{kUnknownDim});
      })
      .cpu([](KernelContext& c, const DecodeAttrs& a) {
        if (a.input_encoding != "UTF-8")
          throw invalid_argument("input_encoding must be UTF-8, got '{}'", a.input_encoding);
        std::vector<int64_t> splits{0};
        std::vector<int32_t> values;
        std::vector<int64_t> starts;
        for (int64_t i = 0; i < c.in(0).num_elements(); ++i) {
          const std::string_view all = c.in<Bytes>(0)[i];
          for (size_t at = 0; at < all.size();) {
            const CodePoint p = decode_utf8(all.substr(at));
            const bool control = a.replace_control_characters && p.value < 0x20;
            if (!p.valid && a.errors == "strict") {
              throw invalid_argument("string {} is no UTF-8 at byte {}", i, at);
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
        c.forward(0, Tensor::of<int64_t>(splits));
        c.forward(1, Tensor::of<int32_t>(values));
        c.forward(2, Tensor::of<int64_t>(starts));
      })
      .doc("The code points of each string, one after the other, with where each starts.")
      .sample({.in = {Tensor{"h\xc3\xa9", "", "\xf0\x9f\x98\x80"}},
               .out = {Tensor{int64_t{0}, int64_t{2}, int64_t{2}, int64_t{3}}, Tensor{0x68, 0xe9, 0x1f600},
                       Tensor{int64_t{0}, int64_t{1}, int64_t{0}}}})
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
    return ragged_over(input.value().shape(), parts[1], parts[0]);
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
    return ragged_over(input.value().shape(), Tensor::of<Bytes>(characters), parts[0]);
  });
}

}  // namespace strings
}  // namespace runnel
