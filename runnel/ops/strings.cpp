// Strings: joining, cutting, case, white space.
#include "runnel/ops/strings.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/base/utf8.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/cumulative.h"
#include "runnel/ops/segment.h"
#include "runnel/ops/string_kernels.h"

namespace runnel {
namespace {

struct JoinAttrs {
  std::string separator;
  static constexpr auto fields() { return field_list(field("separator", &JoinAttrs::separator)); }
};
struct StringSplitAttrs {
  int64_t maxsplit = -1;
  static constexpr auto fields() { return field_list(field("maxsplit", &StringSplitAttrs::maxsplit)); }
};
struct UnitAttrs {
  std::string unit = "BYTE";
  static constexpr auto fields() { return field_list(field("unit", &UnitAttrs::unit, {.texts = "BYTE|UTF8_CHAR"})); }
};
struct EncodingAttrs {
  std::string encoding;
  static constexpr auto fields() { return field_list(field("encoding", &EncodingAttrs::encoding)); }
};
const char* unit_name(strings::Unit unit) { return unit == strings::Unit::byte ? "BYTE" : "UTF8_CHAR"; }

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Byte offset of character number n of `text` (its length when there are no more than n). The first byte begins a
// character whatever it is.
size_t utf8_offset(std::string_view text, int64_t n) {
  size_t at = 0;
  for (; n > 0 && at < text.size(); --n) {
    do ++at;
    while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  }
  return at;
}

// The same for character number -n, counted from the end.
size_t utf8_offset_from_end(std::string_view text, int64_t n) {
  size_t at = text.size();
  for (; n > 0 && at > 0; --n) {
    do --at;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  }
  return at;
}

void write_cut(const Bytes& text, int64_t pos, int64_t len, bool utf8, StringWriter& writer) {
  const int64_t size = utf8 ? utf8_length(text) : static_cast<int64_t>(text.size());
  if (pos > size || pos < -size) {
    throw make_error(Code::out_of_range, "position {} is outside a string of {} {}", pos, size,
                     utf8 ? "characters" : "bytes");
  }
  // Less than no bytes are all that follow, less than no characters are none: as in TensorFlow.
  if (utf8) {
    const size_t from = pos < 0 ? utf8_offset_from_end(text, -pos) : utf8_offset(text, pos);
    return writer.part(text, from, utf8_offset(text.view().substr(from), len));
  }
  const int64_t begin = pos < 0 ? pos + size : pos;
  const int64_t rest = size - begin;
  writer.part(text, static_cast<size_t>(begin), static_cast<size_t>(len < 0 ? rest : std::min(len, rest)));
}

// The pieces of one string, f(begin, size): at white space when `sep` is empty, leading white space dropped (trailing
// too, if not cut short by maxsplit).
template <class F>
void for_each_piece(std::string_view all, std::string_view sep, int64_t maxsplit, const F& f) {
  if (maxsplit == 0) return f(0, all.size());
  size_t at = 0;
  int64_t left = maxsplit < 0 ? std::numeric_limits<int64_t>::max() : maxsplit;
  if (!sep.empty()) {
    for (size_t hit; left > 0 && (hit = all.find(sep, at)) != std::string_view::npos; at = hit + sep.size(), --left) {
      f(at, hit - at);
    }
    return f(at, all.size() - at);
  }
  const auto skip_space = [&] {
    while (at < all.size() && is_space(all[at])) ++at;
  };
  for (skip_space(); at < all.size() && left > 0; skip_space(), --left) {
    size_t end = at;
    while (end < all.size() && !is_space(all[end])) ++end;
    f(at, end - at);
    at = end;
  }
  if (left == 0) f(at, all.size() - at);  // also when nothing is left, as TensorFlow does
}

void split_strings(KernelContext& c, int64_t maxsplit) {
  struct Piece {
    int64_t row, column;
    size_t begin, size;
  };
  const int64_t n = c.in(0).num_elements();
  const Bytes* in = c.in<Bytes>(0);
  const std::string_view sep = *c.in<Bytes>(1);
  std::vector<std::vector<Piece>> found(static_cast<size_t>((n + kStringGrain - 1) / kStringGrain));
  parallel_for(n, kStringGrain, [&](int64_t begin, int64_t end) {
    std::vector<Piece>& pieces = found[static_cast<size_t>(begin / kStringGrain)];
    for (int64_t row = begin; row < end; ++row) {
      int64_t column = 0;
      for_each_piece(in[row], sep, maxsplit, [&](size_t at, size_t size) {
        pieces.push_back({row, column++, at, size});
      });
    }
  });
  std::vector<int64_t> first{0};  // of each chunk
  int64_t most = 0;
  for (const std::vector<Piece>& pieces : found) {
    first.push_back(first.back() + static_cast<int64_t>(pieces.size()));
    for (const Piece& p : pieces) most = std::max(most, p.column + 1);
  }
  auto* indices = c.allocate(0, Shape{first.back(), 2}).mutable_data<int64_t>();
  auto* values = c.allocate(1, Shape{first.back()}).mutable_data<Bytes>();
  parallel_for(static_cast<int64_t>(found.size()), 1, [&](int64_t chunk, int64_t) {
    const auto k = static_cast<size_t>(chunk);
    StringWriter writer(values + first[k]);
    int64_t* index = indices + 2 * first[k];
    for (const Piece& p : found[k]) {
      *index++ = p.row;
      *index++ = p.column;
      writer.part(in[p.row], p.begin, p.size);
    }
    writer.flush();
  });
  c.forward(2, Tensor{n, most});
}

enum class Case { lower, upper };

// ASCII letters only, other bytes stay; with encoding "utf-8" every letter.
void append_in_case(std::string_view bytes, Case to, bool utf8, std::string& text) {
  if (utf8) {
    text += to == Case::lower ? utf8_lower(bytes) : utf8_upper(bytes);
    return;
  }
  const size_t begin = text.size();
  text += bytes;
  const unsigned char first = to == Case::lower ? 'A' : 'a';
  char* p = text.data() + begin;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool letter = static_cast<unsigned char>(static_cast<unsigned char>(p[i]) - first) < 26;
    p[i] = static_cast<char>(p[i] ^ (letter ? 32 : 0));
  }
}

bool is_utf8_encoding(const std::string& encoding) {
  if (!encoding.empty() && encoding != "utf-8") {
    throw invalid_argument("encoding must be empty or utf-8, got '{}'", encoding);
  }
  return !encoding.empty();
}

template <Case to>
void change_case(KernelContext& c, const EncodingAttrs& a) {
  const bool utf8 = is_utf8_encoding(a.encoding);
  for_each_string(c, [utf8](std::string_view s, std::string& text) { append_in_case(s, to, utf8, text); });
}

}  // namespace

void register_strings(Registry& r) {
  r.define<JoinAttrs>("StringJoin")
      .in_list("inputs", "N", DType::string)
      .at_least(0)
      .out("output", DType::string)
      .shape([](InferContext& c) {
        PartialShape all = PartialShape{};
        for (int i = 0; i < c.num_inputs(); ++i) {
          if (c.input(i).rank() == 0) continue;  // a scalar goes with every element
          all = all.rank() == 0 ? c.input(i) : all.merged_with(c.input(i));
        }
        c.output(all);
      })
      .cpu([](KernelContext& c, const JoinAttrs& a) {
        struct Joined {
          const Bytes* strings;
          int64_t step;
        };
        std::vector<Joined> operands;
        for (int k = 0; k < c.num_inputs(); ++k) operands.push_back({c.in<Bytes>(k), c.in(k).rank() == 0 ? 0 : 1});
        write_strings(c.out(), [&](int64_t i, StringWriter& writer) {
          std::string_view separator;
          for (const Joined& o : operands) {
            writer.text().append(separator).append(o.strings[i * o.step].view());
            separator = a.separator;
          }
          writer.end();
        });
      })
      .doc("Joins corresponding strings of the inputs; scalars go with every element.")
      .sample({.in = {Tensor{"a", "b"}, Tensor("-"), Tensor{"c", "d"}}, .out = {Tensor{"a.-.c", "b.-.d"}}},
              {.separator = "."})
      .sample({.in = {}, .out = {Tensor("")}}, {.separator = "."})
      .sample({.in = {Tensor{"a", "b"}, Tensor{"c"}}, .error = "incompatible"});

  r.define<StringSplitAttrs>("StringSplitV2")
      .in("input", DType::string)
      .in("sep", DType::string)
      .out("indices", DType::int64)
      .out("values", DType::string)
      .out("shape", DType::int64)
      .shape([](InferContext& c) {
        c.require_rank(0, 1);
        c.require_rank(1, 0);
        c.output(0, PartialShape{kUnknownDim, 2});
        c.output(1, PartialShape{kUnknownDim});
        c.output(2, PartialShape{2});
      })
      .cpu([](KernelContext& c, const StringSplitAttrs& a) { split_strings(c, a.maxsplit); })
      .doc("The pieces of each string between separators, as a sparse matrix of strings.")
      .sample({.in = {Tensor{"a b", " c "}, Tensor("")},
               .out = {Tensor{{int64_t{0}, int64_t{0}}, {int64_t{0}, int64_t{1}}, {int64_t{1}, int64_t{0}}},
                       Tensor{"a", "b", "c"}, Tensor{int64_t{2}, int64_t{2}}}})
      .sample({.in = {Tensor{"  a b "}, Tensor("")},
               .out = {Tensor{{int64_t{0}, int64_t{0}}, {int64_t{0}, int64_t{1}}}, Tensor{"a", "b "},
                       Tensor{int64_t{1}, int64_t{2}}}},
              {.maxsplit = 1});

  r.define<UnitAttrs>("StringLength")
      .in("input", DType::string)
      .out("output", DType::int32)
      .shape(like<0>)
      .cpu([](KernelContext& c, const UnitAttrs& a) {
        const bool utf8 = a.unit == "UTF8_CHAR";
        for_each_number_of_string<int32_t>(c, [&](std::string_view s) {
          return static_cast<int32_t>(utf8 ? utf8_length(s) : static_cast<int64_t>(s.size()));
        });
      })
      .doc("The length of each string in bytes or characters.")
      .sample({.in = {Tensor{"h\xc3\xa9", ""}}, .out = {Tensor{3, 0}}})
      .sample({.in = {Tensor{"h\xc3\xa9", ""}}, .out = {Tensor{2, 0}}}, {.unit = "UTF8_CHAR"})
      .sample({.in = {Tensor{"h"}}, .error = "\"BYTE\", \"UTF8_CHAR\""}, {.unit = "WORD"});

  r.define<UnitAttrs>("Substr")
      .type("T", index_types)
      .in("input", DType::string)
      .in("pos", "T")
      .in("len", "T")
      .out("output", DType::string)
      .shape([](InferContext& c) {
        if (!c.input(1).compatible_with(c.input(2))) {
          throw invalid_argument("pos and len must have one shape, got {} and {}", c.input(1).str(), c.input(2).str());
        }
        c.output(broadcast_shapes(c.input(0), c.input(1).has_rank() ? c.input(1) : c.input(2)));
      })
      .cpu([]<class T>(KernelContext& c, const UnitAttrs& a) {
        const bool utf8 = a.unit == "UTF8_CHAR";
        const BroadcastPositions at_text(c.in(0).shape(), c.out().shape()), at_pos(c.in(1).shape(), c.out().shape());
        const BroadcastPositions at_len(c.in(2).shape(), c.out().shape());
        const Bytes* text = c.in<Bytes>(0);
        const T *pos = c.in<T>(1), *len = c.in<T>(2);
        write_strings(c.out(), [&](int64_t i, StringWriter& writer) {
          write_cut(text[at_text[i]], pos[at_pos[i]], len[at_len[i]], utf8, writer);
        });
      })
      .doc("`len` bytes or characters of each string from `pos` on; a negative pos counts from the end.")
      .sample({.in = {Tensor{"hello", "abc"}, Tensor(1), Tensor(2)}, .out = {Tensor{"el", "bc"}}})
      .sample({.in = {Tensor("abc"), Tensor{-2, 0, 1}, Tensor{9, 1, -1}}, .out = {Tensor{"bc", "a", "bc"}}})
      .sample({.in = {Tensor("abc"), Tensor(1), Tensor(-1)}, .out = {Tensor("")}}, {.unit = "UTF8_CHAR"})
      .sample({.in = {Tensor("\xb1,2A"), Tensor{0, 1, 3, -1}, Tensor{1, 17, 1, 1}},
               .out = {Tensor{"\xb1", ",2A", "A", "A"}}},
              {.unit = "UTF8_CHAR"})
      .sample({.in = {Tensor("abc"), Tensor{-2, 0}, Tensor(1)}, .error = "pos and len must have one shape"})
      .sample({.in = {Tensor("abc"), Tensor(4), Tensor(1)}, .error = "position 4 is outside"});

  r.define<EncodingAttrs>("StringLower")
      .in("input", DType::string)
      .out("output", DType::string)
      .shape(like<0>)
      .cpu([](KernelContext& c, const EncodingAttrs& a) { change_case<Case::lower>(c, a); })
      .doc("Letters in lower case: ASCII, or all with encoding utf-8.")
      .sample({.in = {Tensor{"\xc3\x89t", "\xce\x9f\xce\xa3 \xff"}},
               .out = {Tensor{"\xc3\xa9t", "\xce\xbf\xcf\x82 \xef\xbf\xbd"}}},
              {.encoding = "utf-8"})
      .sample({.in = {Tensor{"AbC", "\xc3\x89t"}}, .out = {Tensor{"abc", "\xc3\x89t"}}});

  r.define<EncodingAttrs>("StringUpper")
      .in("input", DType::string)
      .out("output", DType::string)
      .shape(like<0>)
      .cpu([](KernelContext& c, const EncodingAttrs& a) { change_case<Case::upper>(c, a); })
      .doc("Letters in upper case: ASCII, or all with encoding utf-8.")
      .sample({.in = {Tensor{"Stra\xc3\x9f"
                             "e"}},
               .out = {Tensor{"STRASSE"}}},
              {.encoding = "utf-8"})
      .sample({.in = {Tensor{"a"}}, .error = "utf-8"}, {.encoding = "latin"})
      .sample({.in = {Tensor{"AbC", "z1"}}, .out = {Tensor{"ABC", "Z1"}}});

  r.define("StringStrip")
      .in("input", DType::string)
      .out("output", DType::string)
      .shape(like<0>)
      .cpu([](KernelContext& c) {
        const Bytes* in = c.in<Bytes>(0);
        write_strings(c.out(), [in](int64_t i, StringWriter& writer) {
          const std::string_view v = in[i];
          size_t begin = 0;
          size_t end = v.size();
          while (begin < end && is_space(v[begin])) ++begin;
          while (end > begin && is_space(v[end - 1])) --end;
          writer.part(in[i], begin, end - begin);
        });
      })
      .doc("Each string without the white space at its ends.")
      .sample({.in = {Tensor{" a b\n", "  "}}, .out = {Tensor{"a b", ""}}});
}

namespace strings {

Tensor join(const OperandList& inputs, const std::string& separator) {
  static const Op<JoinAttrs> op("StringJoin");
  return op.list({inputs.values().begin(), inputs.values().end()}, {.separator = separator}, &inputs.where());
}

RaggedTensor split(const Operand& input, const std::string& sep, int64_t maxsplit) {
  return composed(input.where(), [&]() -> RaggedTensor {
    static const Op<StringSplitAttrs> op("StringSplitV2");
    const Tensor text = input.value();
    const Tensor flat = reshape(Operand(text, input.where()), {-1});
    const auto parts = op.many({flat, Tensor(sep)}, {.maxsplit = maxsplit});
    const Tensor rows = gather(parts[0], 0, 1);
    const Tensor counts = math::unsorted_segment_sum(ones_like(rows), rows, size(flat, DType::int64));
    const Tensor splits = concat({zeros({1}, DType::int64), cumsum(counts)}, 0);
    return ragged_over(text.partial_shape(), parts[1], splits);
  });
}

Tensor length(const Operand& input, Unit unit) {
  static const Op<UnitAttrs> op("StringLength");
  return op({input}, {.unit = unit_name(unit)});
}
Tensor substr(const Operand& input, const Operand& pos, const Operand& len, Unit unit) {
  static const Op<UnitAttrs> op("Substr");
  return op({input, pos, len}, {.unit = unit_name(unit)});
}
Tensor lower(const Operand& input, const std::string& encoding) {
  static const Op<EncodingAttrs> op("StringLower");
  return op({input}, {.encoding = encoding});
}
Tensor upper(const Operand& input, const std::string& encoding) {
  static const Op<EncodingAttrs> op("StringUpper");
  return op({input}, {.encoding = encoding});
}
Tensor strip(const Operand& input) {
  static const Op op("StringStrip");
  return op({input});
}

}  // namespace strings
}  // namespace runnel
