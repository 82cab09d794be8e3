// Raw bytes and comma-separated text as numbers.
#include <algorithm>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/io/csv.h"
#include "runnel/io/origin.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/io.h"
#include "runnel/ops/parse_number.h"

namespace runnel {
namespace {

// What bytes are read as; cut or padded ones as fewer dtypes.
inline constexpr auto padded_types = floating + signed_integers + Types<uint8_t, uint16_t>{};
inline constexpr auto raw_types = padded_types + complexes + booleans;

struct DecodeRawAttrs {
  DType out_type = DType::invalid;
  bool little_endian = true;
  static constexpr auto fields() {
    return field_list(field("out_type", &DecodeRawAttrs::out_type, {.types = raw_types.mask}),
                      field("little_endian", &DecodeRawAttrs::little_endian));
  }
};
struct DecodePaddedAttrs {
  DType out_type = DType::invalid;
  bool little_endian = true;
  static constexpr auto fields() {
    return field_list(field("out_type", &DecodePaddedAttrs::out_type, {.types = padded_types.mask}),
                      field("little_endian", &DecodePaddedAttrs::little_endian));
  }
};
constexpr Types<float, double, int32_t, int64_t, Bytes> csv_types;
struct DecodeCsvAttrs {
  std::vector<DType> OUT_TYPE;
  std::string field_delim = ",";
  bool use_quote_delim = true;
  std::string na_value;
  std::vector<int64_t> select_cols;
  static constexpr auto fields() {
    using A = DecodeCsvAttrs;
    return field_list(field("OUT_TYPE", &A::OUT_TYPE, {.required = true, .minimum = 1, .types = csv_types.mask}),
                      field("field_delim", &A::field_delim), field("use_quote_delim", &A::use_quote_delim),
                      field("na_value", &A::na_value), field("select_cols", &A::select_cols));
  }
};

// Complex numbers are two of their halves' width as far as the order of bytes goes.
size_t swap_width(DType t) { return is_complex(t) ? dtype_size(t) / 2 : dtype_size(t); }

void copy_elements(std::string_view bytes, char* to, DType dtype, bool little_endian) {
  std::ranges::copy(bytes, to);
  const size_t width = swap_width(dtype);
  if (little_endian || width == 1) return;
  for (size_t i = 0; i + width <= bytes.size(); i += width) std::reverse(to + i, to + i + width);
}

PartialShape one_more(const PartialShape& shape, int64_t last) {
  if (!shape.has_rank()) return PartialShape::unknown();
  Dims dims = shape.dims();
  dims.push_back(last);
  return PartialShape(dims);
}

void decode_raw_kernel(KernelContext& c, const DecodeRawAttrs& a) {
  const Tensor& in = c.in(0);
  const int64_t n = in.num_elements();
  const size_t width = dtype_size(a.out_type);
  const size_t size = n == 0 ? 0 : in.data<Bytes>()[0].size();
  for (int64_t i = 0; i < n; ++i) {
    if (in.data<Bytes>()[i].size() != size) {
      throw invalid_argument("strings of one length are needed, but element 0 has {} bytes and element {} has {}", size,
                             i, in.data<Bytes>()[i].size());
    }
  }
  if (size % width != 0) {
    throw invalid_argument("strings of {} bytes are no whole number of {} ({} bytes each)", size,
                           dtype_name(a.out_type), width);
  }
  Tensor& out = c.allocate(0, Shape(one_more(in.shape(), static_cast<int64_t>(size / width))));
  for (int64_t i = 0; i < n; ++i) {
    copy_elements(in.data<Bytes>()[i].view(), out.mutable_data<char>() + static_cast<size_t>(i) * size, a.out_type,
                  a.little_endian);
  }
}

void decode_padded_kernel(KernelContext& c, const DecodePaddedAttrs& a) {
  const Tensor& in = c.in(0);
  const int64_t length = c.int_scalar(1);
  const size_t width = dtype_size(a.out_type);
  if (length <= 0 || static_cast<size_t>(length) % width != 0) {
    throw invalid_argument("fixed_length must be a positive multiple of {} bytes, got {}", width, length);
  }
  const auto size = static_cast<size_t>(length);
  Tensor& out = c.allocate(0, Shape(one_more(in.shape(), length / static_cast<int64_t>(width))));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    std::string padded(in.data<Bytes>()[i].view().substr(0, size));
    padded.resize(size);
    copy_elements(padded, out.mutable_data<char>() + static_cast<size_t>(i) * size, a.out_type, a.little_endian);
  }
}

// --- csv -------------------------------------------------------------------------------------------------------------

template <class E>
E parse_field(std::string_view field) {
  if constexpr (std::is_same_v<E, Bytes>) {
    return Bytes(std::string(field));
  } else {
    return parse_number<E>(field);
  }
}

void check_csv(const DecodeCsvAttrs& a, size_t defaults) {
  if (a.OUT_TYPE.size() != defaults) throw invalid_argument("{} OUT_TYPE for {} defaults", a.OUT_TYPE.size(), defaults);
  if (a.field_delim.size() != 1) throw invalid_argument("field_delim must be one character, got '{}'", a.field_delim);
  if (!a.select_cols.empty() && a.select_cols.size() != defaults) {
    throw invalid_argument("{} select_cols for {} columns", a.select_cols.size(), defaults);
  }
  for (size_t i = 0; i < a.select_cols.size(); ++i) {
    if (a.select_cols[i] < 0 || (i > 0 && a.select_cols[i] <= a.select_cols[i - 1])) {
      throw invalid_argument("select_cols must be rising and not negative, got [{}]", comma_separated(a.select_cols));
    }
  }
}

void decode_csv_kernel(KernelContext& c, const DecodeCsvAttrs& a) {
  const Tensor& records = c.in(0);
  const io::CsvOptions options{.delimiter = a.field_delim[0], .quotes = a.use_quote_delim};
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  for (int64_t i = 0; i < records.num_elements(); ++i) {
    size_t column = 0;
    try {
      io::split_csv(records.data<Bytes>()[i].view(), options, fields, storage);
      if (records.data<Bytes>()[i].size() == 0) fields.clear();  // no record, not one with an empty field
      if (a.select_cols.empty() ? fields.size() != a.OUT_TYPE.size()
                                : fields.size() <= static_cast<size_t>(a.select_cols.back())) {
        throw invalid_argument("it has {} fields, expected {}", fields.size(),
                               a.select_cols.empty() ? fmt::format("{}", a.OUT_TYPE.size())
                                                     : fmt::format("more than {}", a.select_cols.back()));
      }
      for (size_t k = 0; k < a.OUT_TYPE.size(); ++k) {
        column = a.select_cols.empty() ? k : static_cast<size_t>(a.select_cols[k]);
        const std::string_view field = fields[column];
        const Tensor& fallback = c.in(static_cast<int>(k) + 1);
        const bool empty = field.empty() || field == a.na_value;
        if (empty && fallback.num_elements() == 0) {
          throw invalid_argument("field {} is empty and has no default", column);
        }
        csv_types.for_each([&]<class E>() {
          if (dtype_of<E> != a.OUT_TYPE[k]) return;
          c.out<E>(static_cast<int>(k))[i] = empty ? *fallback.data<E>() : parse_field<E>(field);
        });
      }
    } catch (const Error& e) {
      const std::string text = e.what();
      const bool named = text.starts_with("it ") || text.starts_with("field ");
      const std::string file = io::origin_of(records.data<Bytes>()[i].view());
      throw make_error(e.code(), "{}: {}{}", file.empty() ? fmt::format("record {}", i) : file,
                       named ? "" : fmt::format("field {}: ", column), text);
    }
  }
}

}  // namespace

void register_io_decode(Registry& r) {
  r.define<DecodeRawAttrs>("DecodeRaw")
      .in("bytes", DType::string)
      .out("output", "out_type")
      .shape([](InferContext& c) { c.output(one_more(c.input(0), kUnknownDim)); })
      .cpu([](KernelContext& c, const DecodeRawAttrs& a) { decode_raw_kernel(c, a); })
      .doc("The bytes of strings as numbers, along one more dimension.")
      .sample({.in = {Tensor{Bytes(std::string("\1\0\2\0", 4)), Bytes(std::string("\0\1\xff\xff", 4))}},
               .out = {Tensor::of<int16_t>({1, 2, 256, -1}, {2, 2})}},
              {.out_type = DType::int16})
      .sample({.in = {Tensor(Bytes(std::string("\0\1", 2)))}, .out = {Tensor::of<int16_t>({1})}},
              {.out_type = DType::int16, .little_endian = false})
      .sample({.in = {Tensor{"ab", "c"}}, .error = "element 1 has 1"}, {.out_type = DType::uint8})
      .sample({.in = {Tensor{"abc"}}, .error = "no whole number of int16"}, {.out_type = DType::int16});

  r.define<DecodePaddedAttrs>("DecodePaddedRaw")
      .in("input_bytes", DType::string)
      .in_host("fixed_length", DType::int32)
      .out("output", "out_type")
      .shape([](InferContext& c) {
        c.require_rank(1, 0);
        c.output(one_more(c.input(0), kUnknownDim));
      })
      .cpu([](KernelContext& c, const DecodePaddedAttrs& a) { decode_padded_kernel(c, a); })
      .doc("The bytes of strings, cut or filled up with zeros to one length, as numbers.")
      .sample({.in = {Tensor{"abc", "d"}, Tensor(2)}, .out = {Tensor::of<uint8_t>({97, 98, 100, 0}, {2, 2})}},
              {.out_type = DType::uint8})
      .sample({.in = {Tensor{"abc"}, Tensor(3)}, .error = "multiple of 2"}, {.out_type = DType::int16});

  r.define<DecodeCsvAttrs>("DecodeCSV")
      .in("records", DType::string)
      .in_any_list("record_defaults", "OUT_TYPE")
      .out_any_list("output", "OUT_TYPE")
      .shape([](InferContext& c, const DecodeCsvAttrs& a) {
        check_csv(a, static_cast<size_t>(c.num_inputs()) - 1);
        for (int k = 1; k < c.num_inputs(); ++k) {
          const PartialShape& s = c.input(k);
          if (s.rank() > 1 || (s.rank() == 1 && s[0] > 1)) {
            throw invalid_argument("default {} must be one value or none, got shape {}", k - 1, s.str());
          }
          if (c.dtype(k) != a.OUT_TYPE[static_cast<size_t>(k) - 1]) {
            throw invalid_argument("default {} is {}, but its column {}", k - 1, dtype_name(c.dtype(k)),
                                   dtype_name(a.OUT_TYPE[static_cast<size_t>(k) - 1]));
          }
        }
        for (int k = 0; k < c.num_outputs(); ++k) c.output(k, c.input(0));
      })
      .cpu([](KernelContext& c, const DecodeCsvAttrs& a) { decode_csv_kernel(c, a); })
      .not_differentiable()
      .doc("Records of comma-separated text as one tensor per column.")
      .sample({.in = {Tensor{"1,a", "2,\"b,\"\"c\"\"\""}, Tensor{0}, Tensor{""}},
               .out = {Tensor{1, 2}, Tensor{"a", "b,\"c\""}}},
              {.OUT_TYPE = {DType::int32, DType::string}})
      .sample({.in = {Tensor{"1;;NA"}, Tensor{0.5f}, Tensor{7}}, .out = {Tensor{0.5f}, Tensor{7}}},
              {.OUT_TYPE = {DType::float32, DType::int32}, .field_delim = ";", .na_value = "NA", .select_cols = {1, 2}})
      .sample(
          {.in = {Tensor{"1", ""}, Tensor::empty(DType::int32, {0})}, .error = "record 1: it has 0 fields, expected 1"},
          {.OUT_TYPE = {DType::int32}})
      .sample({.in = {Tensor{"1,2"}, Tensor{0}}, .error = "record 0: it has 2 fields, expected 1"},
              {.OUT_TYPE = {DType::int32}})
      .sample({.in = {Tensor{"x"}, Tensor{0}}, .error = "field 0: 'x' is no int32"}, {.OUT_TYPE = {DType::int32}});
}

namespace io {

Tensor decode_raw(const Operand& input_bytes, DType out_type, bool little_endian, int64_t fixed_length) {
  if (fixed_length >= 0) {
    static const Op<DecodePaddedAttrs> padded("DecodePaddedRaw");
    return padded({input_bytes, Tensor(static_cast<int32_t>(fixed_length))},
                  {.out_type = out_type, .little_endian = little_endian});
  }
  static const Op<DecodeRawAttrs> op("DecodeRaw");
  return op({input_bytes}, {.out_type = out_type, .little_endian = little_endian});
}

std::vector<Tensor> decode_csv(const Operand& records, const std::vector<Tensor>& record_defaults,
                               const DecodeCsvOptions& options) {
  return composed(records.where(), [&]() -> std::vector<Tensor> {
    static const Op<DecodeCsvAttrs> op("DecodeCSV");
    DecodeCsvAttrs attrs{.field_delim = options.field_delim,
                         .use_quote_delim = options.use_quote_delim,
                         .na_value = options.na_value,
                         .select_cols = options.select_cols};
    std::vector<Arg> args = {records};
    for (const Tensor& t : record_defaults) {
      attrs.OUT_TYPE.push_back(t.dtype());
      args.emplace_back(t);
    }
    return op.many(args, attrs);
  });
}

}  // namespace io
}  // namespace runnel
