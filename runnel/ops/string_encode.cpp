// Strings in other encodings: base64, and text between UTF-8, UTF-16 and UTF-32.
#include <array>

#include "runnel/base/format.h"
#include "runnel/base/utf8.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/string_kernels.h"
#include "runnel/ops/strings.h"

namespace runnel {
namespace {

struct Base64Attrs {
  bool pad = false;
  static constexpr auto fields() { return field_list(field("pad", &Base64Attrs::pad)); }
};
constexpr AttrRule kErrors{.texts = "strict|replace|ignore"};
constexpr AttrRule kOutputEncodings{.required = true, .texts = "UTF-8|UTF-16-BE|UTF-32-BE"};

struct EncodeAttrs {
  std::string errors = "replace";
  std::string output_encoding;
  int64_t replacement_char = 0xFFFD;
  static constexpr auto fields() {
    return field_list(field("errors", &EncodeAttrs::errors, kErrors),
                      field("output_encoding", &EncodeAttrs::output_encoding, kOutputEncodings),
                      field("replacement_char", &EncodeAttrs::replacement_char));
  }
};
struct TranscodeAttrs {
  std::string input_encoding;
  std::string output_encoding;
  std::string errors = "replace";
  int64_t replacement_char = 0xFFFD;
  bool replace_control_characters = false;
  static constexpr auto fields() {
    using A = TranscodeAttrs;
    return field_list(field("input_encoding", &A::input_encoding, {.required = true}),
                      field("output_encoding", &A::output_encoding, kOutputEncodings),
                      field("errors", &A::errors, kErrors), field("replacement_char", &A::replacement_char),
                      field("replace_control_characters", &A::replace_control_characters));
  }
};

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void append_base64(std::string_view bytes, bool pad, std::string& text) {
  const size_t groups = bytes.size() / 3, left = bytes.size() % 3, begin = text.size();
  text.resize(begin + groups * 4 + (left == 0 ? 0 : pad ? 4 : left + 1), '=');
  char* to = text.data() + begin;
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto put = [&](uint32_t group, size_t characters) {
    for (size_t k = 0; k < characters; ++k) to[k] = kBase64[group >> (18 - 6 * k) & 63];
  };
  for (size_t i = 0; i < groups; ++i, from += 3, to += 4) put(from[0] << 16 | from[1] << 8 | from[2], 4);
  if (left > 0) put(from[0] << 16 | (left > 1 ? from[1] << 8 : 0), left + 1);
}

// The value of each character, kNoDigit where it has none.
constexpr uint8_t kNoDigit = 255;
constexpr std::array<uint8_t, 256> kBase64Digits = [] {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (size_t i = 0; i < kBase64.size(); ++i) digits[static_cast<uint8_t>(kBase64[i])] = static_cast<uint8_t>(i);
  return digits;
}();

void append_base64_bytes(std::string_view text, std::string& out) {
  std::string_view rest = text;
  while (!rest.empty() && rest.back() == '=' && text.size() - rest.size() < 2 && text.size() % 4 == 0) {
    rest.remove_suffix(1);
  }
  if (rest.size() % 4 == 1) throw invalid_argument("'{}' is no base64: one character too many", text);
  for (size_t i = 0; i < rest.size(); i += 4) {
    const size_t n = std::min<size_t>(4, rest.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < n; ++k) {
      const uint8_t digit = kBase64Digits[static_cast<uint8_t>(rest[i + k])];
      if (digit == kNoDigit) {
        throw invalid_argument("'{}' is no web-safe base64: character {} is not allowed", text, i + k);
      }
      group |= static_cast<uint32_t>(digit) << (18 - 6 * k);
    }
    for (size_t k = 0; k + 1 < n; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
}

TextEncoding encoding_of(const std::string& name) {
  if (name == "UTF-8") return TextEncoding::utf8;
  if (name == "UTF-16-BE" || name == "UTF-16BE") return TextEncoding::utf16_be;
  if (name == "UTF-32-BE" || name == "UTF-32BE") return TextEncoding::utf32_be;
  if (name == "UTF-16-LE" || name == "UTF-16LE") return TextEncoding::utf16_le;
  if (name == "UTF-32-LE" || name == "UTF-32LE") return TextEncoding::utf32_le;
  if (name == "ISO-8859-1" || name == "latin1" || name == "LATIN1") return TextEncoding::latin1;
  if (name == "US-ASCII" || name == "ASCII") return TextEncoding::ascii;
  throw invalid_argument(
      "input_encoding '{}' is not supported: UTF-8, UTF-16-BE, UTF-16-LE, UTF-32-BE, UTF-32-LE, "
      "ISO-8859-1 and US-ASCII are",
      name);
}

// Code points that Unicode gives no meaning ever.
bool is_noncharacter(int64_t c) { return (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF); }

void append_big_endian(uint32_t value, int bytes, std::string& out) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 255);
}

void append(uint32_t c, TextEncoding encoding, std::string& out) {
  if (encoding == TextEncoding::utf8) return append_utf8(c, out);
  if (encoding == TextEncoding::utf32_be) return append_big_endian(c, 4, out);
  if (c < 0x10000) return append_big_endian(c, 2, out);
  append_big_endian(0xD800 + ((c - 0x10000) >> 10), 2, out);
  append_big_endian(0xDC00 + ((c - 0x10000) & 0x3FF), 2, out);
}

void check_replacement_char(int64_t replacement) {
  if (!is_code_point(replacement)) throw invalid_argument("replacement_char {} is no character", replacement);
}

void encode(KernelContext& c, const EncodeAttrs& a) {
  const TextEncoding encoding = encoding_of(a.output_encoding);
  const int32_t* characters = c.in<int32_t>(0);
  const Dims splits = c.ints(1);
  const int64_t total = c.in(0).num_elements();
  if (splits.empty() || splits[0] != 0) throw invalid_argument("input_splits must start with 0");
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) throw invalid_argument("input_splits fall: {} after {}", splits[i], splits[i - 1]);
  }
  if (splits.back() != total)
    throw invalid_argument("input_splits end at {}, there are {} characters", splits.back(), total);
  c.allocate(0, Shape{static_cast<int64_t>(splits.size()) - 1});
  write_strings(c.out(), [&](int64_t row, StringWriter& writer) {
    const auto i = static_cast<size_t>(row);
    for (int64_t k = splits[i]; k < splits[i + 1]; ++k) {
      int64_t value = characters[k];
      const bool outside = value < 0 || value > 0x10FFFF;
      if (!is_code_point(value) || is_noncharacter(value)) {
        if (a.errors == "strict") throw invalid_argument("{} is no Unicode character", value);
        if (a.errors == "replace") value = a.replacement_char;
        // TensorFlow ignores only what no encoding has room for; half a surrogate pair cannot be written in UTF-8.
        if (a.errors == "ignore" && outside) continue;
        if (a.errors == "ignore" && !is_code_point(value) && encoding == TextEncoding::utf8) value = 0xFFFD;
      }
      append(static_cast<uint32_t>(value), encoding, writer.text());
    }
    writer.end();
  });
}

void transcode(KernelContext& c, const TranscodeAttrs& a) {
  const TextEncoding from = encoding_of(a.input_encoding), to = encoding_of(a.output_encoding);
  for_each_string(c, [&](std::string_view rest, std::string& text) {
    while (!rest.empty()) {
      const CodePoint p = decode_text(rest, from);
      rest.remove_prefix(static_cast<size_t>(p.bytes));
      // A control character that is to be replaced goes the way of what is no character.
      const bool good = p.valid && !(a.replace_control_characters && p.value < 0x20);
      if (!good && a.errors == "strict") {
        throw invalid_argument("a string is no {} text{}", a.input_encoding,
                               p.valid ? fmt::format(": it has the control character {}", p.value) : "");
      }
      if (!good && a.errors == "ignore") continue;
      append(good ? p.value : static_cast<uint32_t>(a.replacement_char), to, text);
    }
  });
}

}  // namespace

void register_string_encode(Registry& r) {
  r.define<Base64Attrs>("EncodeBase64")
      .in("input", DType::string)
      .out("output", DType::string)
      .shape(like<0>)
      .cpu([](KernelContext& c, const Base64Attrs& a) {
        for_each_string(c, [&](std::string_view s, std::string& text) { append_base64(s, a.pad, text); });
      })
      .doc("The bytes of each string in web-safe base64.")
      .sample({.in = {Tensor{"ab?", "a", ""}}, .out = {Tensor{"YWI_", "YQ", ""}}})
      .sample({.in = {Tensor{"ab", "a"}}, .out = {Tensor{"YWI=", "YQ=="}}}, {.pad = true});

  r.define("DecodeBase64")
      .in("input", DType::string)
      .out("output", DType::string)
      .shape(like<0>)
      .cpu([](KernelContext& c) { for_each_string(c, append_base64_bytes); })
      .doc("The bytes that web-safe base64 stands for, padded or not.")
      .sample({.in = {Tensor{"YWI_", "YQ", "YQ==", ""}}, .out = {Tensor{"ab?", "a", "a", ""}}})
      .sample({.in = {Tensor{"a+b/"}}, .error = "no web-safe base64"});

  r.define<EncodeAttrs>("UnicodeEncode")
      .type("Tsplits", index_types, DType::int64)
      .in("input_values", DType::int32)
      .in_host("input_splits", "Tsplits")
      .out("output", DType::string)
      .shape([](InferContext& c, const EncodeAttrs& a) {
        check_replacement_char(a.replacement_char);
        c.require_rank(0, 1);
        c.require_rank(1, 1);
        const int64_t splits = c.input(1).has_rank() ? c.input(1)[0] : kUnknownDim;
        c.output(PartialShape{splits > 0 ? splits - 1 : kUnknownDim});
      })
      .cpu([](KernelContext& c, const EncodeAttrs& a) { encode(c, a); })
      .doc("A string of each row of code points.")
      .sample({.in = {Tensor{0x68, 0xe9, 0x1f600}, Tensor{0, 2, 2, 3}},
               .out = {Tensor{"h\xc3\xa9", "", "\xf0\x9f\x98\x80"}}},
              {.output_encoding = "UTF-8"})
      .sample({.in = {Tensor{0x68, 0x110000}, Tensor{0, 2}}, .out = {Tensor{"h\xef\xbf\xbd"}}},
              {.output_encoding = "UTF-8"})
      .sample({.in = {Tensor{0x110000, 0xFFFE, 0xD800}, Tensor{0, 1, 2, 3}},
               .out = {Tensor{"", "\xef\xbf\xbe", "\xef\xbf\xbd"}}},
              {.errors = "ignore", .output_encoding = "UTF-8"})
      .sample({.in = {Tensor{0x110000}, Tensor{0, 1}}, .error = "no Unicode character"},
              {.errors = "strict", .output_encoding = "UTF-8"})
      .sample({.in = {Tensor{0x68}, Tensor{0, 2}}, .error = "input_splits end at 2"}, {.output_encoding = "UTF-8"});

  r.define<TranscodeAttrs>("UnicodeTranscode")
      .in("input", DType::string)
      .out("output", DType::string)
      .shape([](InferContext& c, const TranscodeAttrs& a) {
        check_replacement_char(a.replacement_char);
        encoding_of(a.input_encoding);
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c, const TranscodeAttrs& a) { transcode(c, a); })
      .doc("Each string in another encoding.")
      .sample({.in = {Tensor{"h\xe9"}}, .out = {Tensor{"h\xc3\xa9"}}},
              {.input_encoding = "ISO-8859-1", .output_encoding = "UTF-8"})
      .sample({.in = {Tensor{"h\xff"}}, .out = {Tensor{"h\xef\xbf\xbd"}}},
              {.input_encoding = "UTF-8", .output_encoding = "UTF-8"})
      .sample({.in = {Tensor{"h\xc3\xa9"}}, .out = {Tensor{Bytes(std::string("\0h\0\xe9", 4))}}},
              {.input_encoding = "UTF-8", .output_encoding = "UTF-16-BE"})
      .sample({.in = {Tensor{"a\tb"}}, .out = {Tensor{"a?b"}}}, {.input_encoding = "UTF-8",
                                                                 .output_encoding = "UTF-8",
                                                                 .replacement_char = 63,
                                                                 .replace_control_characters = true})
      .sample({.in = {Tensor{"a\tb"}}, .out = {Tensor{"ab"}}}, {.input_encoding = "UTF-8",
                                                                .output_encoding = "UTF-8",
                                                                .errors = "ignore",
                                                                .replace_control_characters = true})
      .sample({.in = {Tensor{"a\tb"}}, .error = "the control character 9"}, {.input_encoding = "UTF-8",
                                                                             .output_encoding = "UTF-8",
                                                                             .errors = "strict",
                                                                             .replace_control_characters = true})
      .sample({.in = {Tensor{"\xff"}}, .error = "no UTF-8 text"},
              {.input_encoding = "UTF-8", .output_encoding = "UTF-8", .errors = "strict"});
}

namespace strings {

Tensor unicode_encode(const RaggedTensor& input, const std::string& output_encoding, const std::string& errors,
                      int64_t replacement_char, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    static const Op<EncodeAttrs> op("UnicodeEncode");
    if (input.ragged_rank() > 1) {
      throw invalid_argument("[UnicodeEncode] one ragged dimension is supported, got {}", input.ragged_rank());
    }
    return op({input.values(), input.row_splits()},
              {.errors = errors, .output_encoding = output_encoding, .replacement_char = replacement_char});
  });
}

Tensor unicode_encode(const Operand& input, const std::string& output_encoding, const std::string& errors,
                      int64_t replacement_char) {
  return composed(input.where(), [&]() -> Tensor {
    static const Op<EncodeAttrs> op("UnicodeEncode");
    const Tensor x = input.value();
    const PartialShape s = x.partial_shape();
    if (!s.has_rank() || s.rank() == 0) {
      throw invalid_argument("[UnicodeEncode] the code points of a string are a vector or more, got shape {}", s.str());
    }
    const Tensor sizes = shape(x);
    const Tensor width = sizes[-1];
    const Tensor outer = sizes(slice(none, -1));
    const Tensor splits = range(reduce_prod(outer) + 1) * width;
    const Tensor flat =
        op({reshape(x, {-1}), splits},
           {.errors = errors, .output_encoding = output_encoding, .replacement_char = replacement_char});
    return reshape(flat, outer);
  });
}

Tensor unicode_transcode(const Operand& input, const std::string& input_encoding, const std::string& output_encoding,
                         const TranscodeOptions& o) {
  static const Op<TranscodeAttrs> op("UnicodeTranscode");
  return op({input}, {.input_encoding = input_encoding,
                      .output_encoding = output_encoding,
                      .errors = o.errors,
                      .replacement_char = o.replacement_char,
                      .replace_control_characters = o.replace_control_characters});
}

}  // namespace strings

namespace io {

Tensor encode_base64(const Operand& input, bool pad) {
  static const Op<Base64Attrs> op("EncodeBase64");
  return op({input}, {.pad = pad});
}
Tensor decode_base64(const Operand& input) {
  static const Op op("DecodeBase64");
  return op({input});
}

}  // namespace io
}  // namespace runnel
