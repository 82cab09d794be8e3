// Strings and numbers: regular expressions, conversion, formatting.
#include <re2/re2.h>

#include <cmath>
#include <cstdio>

#include "runnel/base/decimal.h"
#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/parse_number.h"
#include "runnel/ops/string_kernels.h"
#include "runnel/ops/strings.h"
#include "runnel/tensor/summary_text.h"

namespace runnel {
namespace {

struct ReplaceAttrs {
  bool replace_global = true;
  static constexpr auto fields() { return field_list(field("replace_global", &ReplaceAttrs::replace_global)); }
};
struct StaticMatchAttrs {
  std::string pattern;
  static constexpr auto fields() {
    return field_list(field("pattern", &StaticMatchAttrs::pattern, {.required = true}));
  }
};
struct StaticReplaceAttrs {
  std::string pattern, rewrite;
  bool replace_global = true;
  static constexpr auto fields() {
    return field_list(field("pattern", &StaticReplaceAttrs::pattern, {.required = true}),
                      field("rewrite", &StaticReplaceAttrs::rewrite, {.required = true}),
                      field("replace_global", &StaticReplaceAttrs::replace_global));
  }
};
inline constexpr Types<float, double, int32_t, int64_t> spelled_types;
struct NumberAttrs {
  DType out_type = DType::float32;
  static constexpr auto fields() {
    return field_list(field("out_type", &NumberAttrs::out_type, {.types = spelled_types.mask}));
  }
};
struct AsStringAttrs {
  int64_t precision = -1;
  bool scientific = false;
  bool shortest = false;
  int64_t width = -1;
  std::string fill;
  static constexpr auto fields() {
    return field_list(field("precision", &AsStringAttrs::precision), field("scientific", &AsStringAttrs::scientific),
                      field("shortest", &AsStringAttrs::shortest), field("width", &AsStringAttrs::width),
                      field("fill", &AsStringAttrs::fill));
  }
};
struct FormatAttrs {
  std::string text = "%s";
  std::string placeholder = "%s";
  int64_t summarize = 3;
  static constexpr auto fields() {
    return field_list(field("template", &FormatAttrs::text), field("placeholder", &FormatAttrs::placeholder),
                      field("summarize", &FormatAttrs::summarize));
  }
};

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

// The scalar pattern of input i, compiled.
class Pattern {
 public:
  explicit Pattern(const Tensor& t) : Pattern(t.data<Bytes>()->view()) {}
  explicit Pattern(std::string_view text) : regex_(piece(text), RE2::Quiet) {
    if (!regex_.ok())
      throw invalid_argument("the pattern '{}' is no regular expression: {}", regex_.pattern(), regex_.error());
  }
  const RE2& operator*() const { return regex_; }

 private:
  RE2 regex_;
};

void match_strings(KernelContext& c, const Pattern& pattern) {
  for_each_number_of_string<bool>(c, [&](std::string_view s) { return RE2::FullMatch(piece(s), *pattern); });
}

// With a rewrite that does not fit the pattern, strings stay as they are.
void replace_in_strings(KernelContext& c, const Pattern& pattern, std::string_view rewrite, bool global) {
  for_each_string(c, [&](std::string_view s, std::string& to) {
    std::string text(s);
    if (global) {
      RE2::GlobalReplace(&text, *pattern, piece(rewrite));
    } else {
      RE2::Replace(&text, *pattern, piece(rewrite));
    }
    to += text;
  });
}

constexpr int64_t kLongestNumber = 65536;  // characters

std::string printf_text(const std::string& spec, double value) {
  char buffer[128];
  const int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
  if (n < 0) throw make_error(Code::internal, "printf cannot write a number as '{}'", spec);
  const auto size = static_cast<size_t>(n);
  if (size < sizeof buffer) return {buffer, size};
  std::string text(size + 1, '\0');  // printf ends it with a zero
  std::snprintf(text.data(), text.size(), spec.c_str(), value);
  text.pop_back();
  return text;
}

std::string pad(std::string text, const AsStringAttrs& a) {
  if (a.width <= static_cast<int64_t>(text.size())) return text;
  const size_t missing = static_cast<size_t>(a.width) - text.size();
  if (a.fill == "-") return text + std::string(missing, ' ');
  if (a.fill == "0") {
    const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    return text.insert(sign, missing, '0');
  }
  return std::string(missing, ' ') + text;
}

template <class T>
std::string number_text(T value, const AsStringAttrs& a) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";  // whatever the width, as in TensorFlow
  } else if constexpr (std::is_same_v<T, Bytes>) {
    AsStringAttrs spaces = a;
    if (a.fill != "-") spaces.fill = "";
    return pad(value.str(), spaces);
  } else if constexpr (std::is_integral_v<T>) {
    std::string text = std::to_string(value);
    if (a.fill == "+" && value >= 0) text = "+" + text;
    if (a.fill == " " && value >= 0) text = " " + text;
    return pad(text, a);
  } else if constexpr (is_complex(dtype_of<T>)) {
    AsStringAttrs part = a;
    part.width = -1;
    return pad("(" + number_text(value.real(), part) + "," + number_text(value.imag(), part) + ")", a);
  } else {
    std::string spec = "%";
    if (a.fill == "+" || a.fill == " ") spec += a.fill;
    if (a.precision >= 0) spec += "." + std::to_string(a.precision);
    spec += a.scientific ? "e" : a.shortest ? "g" : "f";
    return pad(printf_text(spec, static_cast<double>(value)), a);
  }
}

}  // namespace

void register_string_text(Registry& r) {
  r.define("RegexFullMatch")
      .in("input", DType::string)
      .in("pattern", DType::string)
      .out("output", DType::bool_)
      .shape([](InferContext& c) {
        c.require_rank(1, 0);
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c) { match_strings(c, Pattern(c.in(1))); })
      .doc("Whether the whole string matches the pattern (RE2 syntax).")
      .sample({.in = {Tensor{"TF lib", "lib TF"}, Tensor(".*lib$")}, .out = {Tensor{true, false}}})
      .sample({.in = {Tensor{"a"}, Tensor("(")}, .error = "no regular expression"});

  r.define<StaticMatchAttrs>("StaticRegexFullMatch")
      .in("input", DType::string)
      .out("output", DType::bool_)
      .shape(like<0>)
      .cpu([](KernelContext& c, const StaticMatchAttrs& a) { match_strings(c, Pattern(std::string_view(a.pattern))); })
      .doc("Whether the whole string matches the pattern (RE2 syntax), which stands in the graph.")
      .sample({.in = {Tensor{"TF lib", "lib TF"}}, .out = {Tensor{true, false}}}, {.pattern = ".*lib$"})
      .sample({.in = {Tensor{"a"}}, .error = "no regular expression"}, {.pattern = "("});

  r.define<StaticReplaceAttrs>("StaticRegexReplace")
      .in("input", DType::string)
      .out("output", DType::string)
      .shape(like<0>)
      .cpu([](KernelContext& c, const StaticReplaceAttrs& a) {
        replace_in_strings(c, Pattern(std::string_view(a.pattern)), a.rewrite, a.replace_global);
      })
      .doc("Matches of the pattern, which stands in the graph, replaced by the rewrite.")
      .sample({.in = {Tensor{"a1b22"}}, .out = {Tensor{"a<1>b<22>"}}}, {.pattern = "([0-9]+)", .rewrite = "<\\1>"})
      .sample({.in = {Tensor{"a1b22"}}, .out = {Tensor{"ab22"}}}, {.pattern = "[0-9]+", .replace_global = false})
      .sample({.in = {Tensor{"a"}}, .out = {Tensor{"a"}}}, {.pattern = "a", .rewrite = "\\1"});

  r.define<ReplaceAttrs>("RegexReplace")
      .in("input", DType::string)
      .in("pattern", DType::string)
      .in("rewrite", DType::string)
      .out("output", DType::string)
      .shape([](InferContext& c) {
        c.require_rank(1, 0);
        c.require_rank(2, 0);
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c, const ReplaceAttrs& a) {
        const Pattern pattern(c.in(1));
        const std::string_view rewrite = *c.in<Bytes>(2);
        std::string problem;
        if (!(*pattern).CheckRewriteString(piece(rewrite), &problem)) {
          throw invalid_argument("the rewrite is not valid: {}", problem);
        }
        replace_in_strings(c, pattern, rewrite, a.replace_global);
      })
      .doc("Matches of the pattern replaced by the rewrite, in which \\1 is the first group.")
      .sample({.in = {Tensor{"a1b22"}, Tensor("([0-9]+)"), Tensor("<\\1>")}, .out = {Tensor{"a<1>b<22>"}}})
      .sample({.in = {Tensor{"a1b22"}, Tensor("[0-9]"), Tensor("-")}, .out = {Tensor{"a-b22"}}},
              {.replace_global = false});

  r.define<NumberAttrs>("StringToNumber")
      .in("string_tensor", DType::string)
      .out("output", "out_type")
      .shape(like<0>)
      .cpu([](KernelContext& c) {
        spelled_types.for_each([&]<class T>() {
          if (dtype_of<T> != c.output_dtype(0)) return;
          for_each_number_of_string<T>(c, [](std::string_view s) { return parse_number<T>(s); });
        });
      })
      .doc("The numbers that the strings spell.")
      .sample({.in = {Tensor{"1.5", " -3 "}}, .out = {Tensor{1.5f, -3.f}}})
      .sample({.in = {Tensor{"0x10", "+5", "-inf"}}, .out = {Tensor{16.f, 5.f, -INFINITY}}})
      .sample({.in = {Tensor{"-Infinity"}}, .error = "is no float32"})
      .sample({.in = {Tensor{"+5"}}, .error = "is no int32"}, {.out_type = DType::int32})
      .sample({.in = {Tensor{"x1"}}, .error = "'x1' is no float32"})
      .sample({.in = {Tensor{"1"}}, .error = "attr 'out_type' of int8"}, {.out_type = DType::int8});

  r.define<AsStringAttrs>("AsString")
      .in("input", data_types)
      .out("output", DType::string)
      .shape(like<0>)
      .cpu([]<class T>(KernelContext& c, const AsStringAttrs& a) {
        if (a.width > kLongestNumber || a.precision > kLongestNumber) {
          throw invalid_argument("width and precision are {} at most, got {} and {}", kLongestNumber, a.width,
                                 a.precision);
        }
        if (a.scientific && a.shortest) throw invalid_argument("scientific and shortest exclude each other");
        if constexpr (std::is_integral_v<T>) {
          if (a.scientific || a.shortest || a.precision >= 0) {
            throw invalid_argument("scientific, shortest and precision are for floats, the numbers are {}",
                                   dtype_name(dtype_of<T>));
          }
        }
        if (a.fill.size() > 1 || std::string("0 +-").find(a.fill) == std::string::npos) {
          throw invalid_argument("fill must be one of '0', ' ', '+', '-', got '{}'", a.fill);
        }
        const T* in = c.in<T>(0);
        write_strings(c.out(), [&](int64_t i, StringWriter& writer) {
          if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
            writer.text() += number_text(static_cast<float>(in[i]), a);
          } else {
            writer.text() += number_text(in[i], a);
          }
          writer.end();
        });
      })
      .doc("Each number as text, by printf's rules; strings stay what they are.")
      // The text depends on the dtype ("7", "7.000000", "true"): the values are stated in the tests of strings.
      .sample({.in = {Tensor::empty(DType::float32, {0, 2})}, .out = {Tensor::empty(DType::string, {0, 2})}})
      .sample({.in = {Tensor{"a", "bcd"}}, .out = {Tensor{"  a", "bcd"}}}, {.width = 3, .fill = "0"})
      .sample({.in = {Tensor{7}}, .error = "fill must be"}, {.fill = "x"})
      .sample({.in = {Tensor{7}}, .error = "65536 at most"}, {.width = int64_t{1} << 32})
      .sample({.in = {Tensor{7.f}}, .error = "65536 at most"}, {.precision = int64_t{1} << 40})
      .sample({.in = {Tensor{7}}, .error = "are for floats"}, {.scientific = true})
      .sample({.in = {Tensor{true}}, .error = "are for floats"}, {.precision = 3});

  r.define<FormatAttrs>("StringFormat")
      .in_any_list("inputs", "T")
      .out("output", DType::string)
      .shape(scalar_shape)
      .cpu([](KernelContext& c, const FormatAttrs& a) {
        std::string out;
        std::string_view rest = a.text;
        int used = 0;
        for (size_t hit; (hit = rest.find(a.placeholder)) != std::string_view::npos;) {
          if (used == c.num_inputs()) {
            throw invalid_argument("the template has more placeholders than the {} inputs", c.num_inputs());
          }
          out += rest.substr(0, hit);
          out += summary_text(c.in(used++), a.summarize);
          rest.remove_prefix(hit + a.placeholder.size());
        }
        if (used != c.num_inputs()) {
          throw invalid_argument("{} inputs, but only {} placeholders", c.num_inputs(), used);
        }
        *c.out<Bytes>() = out + std::string(rest);
      })
      .any_device()
      .doc("The template with each placeholder replaced by the text of an input.")
      .sample({.in = {Tensor{1, 2}, Tensor(2.5f)}, .out = {Tensor("a [1 2] b 2.5")}},
              {.text = "a {} b {}", .placeholder = "{}"})
      .sample({.in = {Tensor{1, 2}, Tensor(2.5f), Tensor{{1, 2}, {3, 4}}}, .out = {Tensor("[ ...] ... [\n ...]")}},
              {.text = "{} {} {}", .placeholder = "{}", .summarize = 0})
      .sample({.in = {Tensor(1)}, .error = "placeholders"}, {.text = "none", .placeholder = "{}"});
}

namespace strings {

Tensor regex_full_match(const Operand& input, const Operand& pattern) {
  static const Op op("RegexFullMatch");
  return op({input, pattern});
}
Tensor regex_replace(const Operand& input, const Operand& pattern, const Operand& rewrite, bool replace_global) {
  static const Op<ReplaceAttrs> op("RegexReplace");
  return op({input, pattern, rewrite}, {.replace_global = replace_global});
}
Tensor to_number(const Operand& input, DType out_type) {
  static const Op<NumberAttrs> op("StringToNumber");
  return op({input}, {.out_type = out_type});
}
Tensor as_string(const Operand& input, const AsStringOptions& o) {
  static const Op<AsStringAttrs> op("AsString");
  return op({input}, {o.precision, o.scientific, o.shortest, o.width, o.fill});
}
Tensor format(const std::string& text, const OperandList& inputs, const std::string& placeholder, int64_t summarize) {
  static const Op<FormatAttrs> op("StringFormat");
  return op.list({inputs.values().begin(), inputs.values().end()},
                 {.text = text, .placeholder = placeholder, .summarize = summarize}, &inputs.where());
}

}  // namespace strings
}  // namespace runnel
