// Tables as graphs make them: by name, filled from tensors or from a file.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/lookup.h"
#include "runnel/ops/lookup_table.h"
#include "runnel/ops/math.h"
#include "runnel/ops/named_resources.h"
#include "runnel/ops/parse_number.h"
#include "runnel/ops/strings.h"

namespace runnel {
namespace {

struct AnonymousTableAttrs {
  DType key_dtype = DType::invalid;
  DType value_dtype = DType::invalid;
  static constexpr auto fields() {
    return field_list(field("key_dtype", &AnonymousTableAttrs::key_dtype),
                      field("value_dtype", &AnonymousTableAttrs::value_dtype));
  }
};
struct TextFileAttrs {
  int64_t key_index = 0;
  int64_t value_index = 0;
  int64_t vocab_size = -1;
  std::string delimiter = "\t";
  int64_t offset = 0;
  static constexpr auto fields() {
    using A = TextFileAttrs;
    return field_list(field("key_index", &A::key_index, {.required = true, .minimum = -2}),
                      field("value_index", &A::value_index, {.required = true, .minimum = -2}),
                      field("vocab_size", &A::vocab_size, {.minimum = -1}), field("delimiter", &A::delimiter),
                      field("offset", &A::offset));
  }
};

constexpr int64_t kWholeLine = -2;
constexpr int64_t kLineNumber = -1;

template <bool fixed>
void table_by_name(KernelContext& c, const TableAttrs& a) {
  const TableType type{.key = a.key_dtype, .value = a.value_dtype, .fixed = fixed};
  c.forward(0, handle_to_table(find_or_make_table(a, type, fixed ? "hash_table" : "MutableHashTable",
                                                  [&](const std::string& name) { return make_table(name, type); })));
}

// Gives a fixed table its contents, once. Later ones are passed over where they are as many; false where they are not.
bool give_contents(Table& table, const Tensor& keys, const Tensor& values) {
  if (!table.type.fixed) throw invalid_argument("{} is filled with insert, not initialized", table.describe());
  check_entries(table, keys, values);
  return table.initialize(keys, values);
}

void fill_table(Table& table, const Tensor& keys, const Tensor& values) {
  if (give_contents(table, keys, values)) return;
  throw make_error(Code::failed_precondition, "{} has {} entries already, these are {} others", table.describe(),
                   table.size(), keys.num_elements());
}

// One column of a text file, or what stands for it, as a tensor of the dtype.
class TextColumn {
 public:
  TextColumn(int64_t index, DType dtype, const TextFileAttrs& a) : index_(index), dtype_(dtype), attrs_(a) {
    if (index < kWholeLine) throw invalid_argument("a column must be -2, -1 or a number from 0 on, got {}", index);
    if (index == kWholeLine && dtype != DType::string && !is_integer(dtype)) {
      throw invalid_argument("whole lines are strings or integers, the table wants {}", dtype_name(dtype));
    }
    if (index == kLineNumber && dtype != DType::int64) {
      throw invalid_argument("line numbers are int64, the table wants {}", dtype_name(dtype));
    }
  }
  void add(std::string_view line, int64_t number) {
    if (index_ == kLineNumber) return integers_.push_back(number + attrs_.offset);
    std::string_view text = line;
    if (index_ >= 0) {
      for (int64_t k = 0; k < index_; ++k) {
        const size_t at = text.find(attrs_.delimiter);
        if (at == std::string_view::npos) {
          throw invalid_argument("line {} has {} columns, {} are needed", number + 1, k + 1, index_ + 1);
        }
        text.remove_prefix(at + attrs_.delimiter.size());
      }
      text = text.substr(0, text.find(attrs_.delimiter));
    }
    if (dtype_ == DType::string) {
      texts_.emplace_back(std::string(text));
      return;
    }
    try {
      if (dtype_ == DType::float32) {
        reals_.push_back(parse_number<float>(text));
      } else if (dtype_ == DType::float64) {
        reals_.push_back(parse_number<double>(text));
      } else if (dtype_ == DType::int32) {
        integers_.push_back(parse_number<int32_t>(text));
      } else {
        integers_.push_back(parse_number<int64_t>(text));
      }
    } catch (const Error& e) {
      throw invalid_argument("line {}: {}", number + 1, e.what());
    }
  }
  Tensor tensor() const {
    if (index_ == kLineNumber) return Tensor::of<int64_t>(integers_);
    if (dtype_ == DType::string) return Tensor::of<Bytes>(texts_);
    if (dtype_ == DType::float64) return Tensor::of<double>(reals_);
    if (dtype_ == DType::float32) return Tensor::of<float>(std::vector<float>(reals_.begin(), reals_.end()));
    if (dtype_ == DType::int64) return Tensor::of<int64_t>(integers_);
    if (dtype_ == DType::int32) return Tensor::of<int32_t>(std::vector<int32_t>(integers_.begin(), integers_.end()));
    throw invalid_argument("a column of text cannot be read as {}", dtype_name(dtype_));
  }

 private:
  int64_t index_;
  DType dtype_;
  const TextFileAttrs& attrs_;
  std::vector<Bytes> texts_;
  std::vector<int64_t> integers_;
  std::vector<double> reals_;
};

std::pair<Tensor, Tensor> read_columns(const std::string& path, DType key, DType value, const TextFileAttrs& a) {
  if (a.delimiter.size() != 1) throw invalid_argument("the delimiter must be one character, got '{}'", a.delimiter);
  TextColumn keys(a.key_index, key, a), values(a.value_index, value, a);
  const std::vector<std::byte> bytes = Env::posix().read_file(path);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::erase(text, '\r');
  int64_t number = 0;
  for (size_t at = 0; at < text.size() && number != a.vocab_size; ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.empty()) throw invalid_argument("{}: line {} is empty", path, number + 1);
    try {
      keys.add(line, number);
      values.add(line, number);
    } catch (const Error& e) {
      throw Error(e.code(), path + ": " + e.what());
    }
    at = end + 1;
  }
  if (a.vocab_size >= 0 && number < a.vocab_size) {
    throw invalid_argument("{} has {} lines, vocab_size asks for {}", path, number, a.vocab_size);
  }
  return {keys.tensor(), values.tensor()};
}

template <class B>
auto with_entries(B op, const char* key_type, const char* value_type) {
  return op.in("table_handle", DType::resource)
      .type(key_type, key_types)
      .in("keys", key_type)
      .type(value_type, data_types)
      .in("values", value_type)
      .shape([](InferContext&) {});
}

}  // namespace

std::shared_ptr<Table> find_or_make_table(const TableAttrs& a, const TableType& type, const std::string& kind,
                                          FunctionRef<std::shared_ptr<Table>(const std::string& name)> make) {
  const std::string& shown = !a.shared_name.empty() ? a.shared_name : !a.home.node.empty() ? a.home.node : kind;
  auto table = std::static_pointer_cast<Table>(
      named_resource("table", a.home, a.container, a.shared_name, [&] { return make(shown); }));
  if (!(table->type == type)) {
    throw invalid_argument("{} maps {}, this asks for another table from {}", table->describe(), described(table->type),
                           described(type));
  }
  return table;
}

void register_lookup_handles(Registry& r) {
  r.define<TableAttrs>("HashTableV2")
      .out("table_handle", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const TableAttrs& a) { table_by_name<true>(c, a); })
      .stateful()
      .doc("The table of that shared_name, which gets its contents once; a new one without a name.");
  r.define<TableAttrs>("MutableHashTableV2")
      .out("table_handle", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const TableAttrs& a) { table_by_name<false>(c, a); })
      .stateful()
      .doc("The table of that shared_name, which can change; a new one without a name.");
  r.define<AnonymousTableAttrs>("AnonymousHashTable")
      .out("table_handle", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const AnonymousTableAttrs& a) {
        c.forward(
            0, handle_to_table(make_table("hash_table", {.key = a.key_dtype, .value = a.value_dtype, .fixed = true})));
      })
      .stateful()
      .doc("A new table, which gets its contents once.");
  r.define<AnonymousTableAttrs>("AnonymousMutableHashTable")
      .out("table_handle", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const AnonymousTableAttrs& a) {
        c.forward(0, handle_to_table(make_table("MutableHashTable", {.key = a.key_dtype, .value = a.value_dtype})));
      })
      .stateful()
      .doc("A new table, which can change.");

  with_entries(r.define("InitializeTableV2"), "Tkey", "Tval")
      .cpu([](KernelContext& c) { fill_table(table_of(c.in(0)), c.in(1), c.in(2)); })
      .stateful()
      .doc("Gives a table its contents.");

  r.define<TextFileAttrs>("InitializeTableFromTextFileV2")
      .in("table_handle", DType::resource)
      .in_host("filename", DType::string)
      .shape([](InferContext& c) { c.require_rank(1, 0); })
      .cpu([](KernelContext& c, const TextFileAttrs& a) {
        Table& table = table_of(c.in(0));
        const auto [keys, values] = read_columns(c.in<Bytes>(1)->str(), table.type.key, table.type.value, a);
        give_contents(table, keys, values);  // of a table that has others already it is no error
      })
      .stateful()
      .doc("Gives a table the lines of a file: columns by number, whole lines (-2) or line numbers (-1).");

  with_entries(r.define("LookupTableImportV2"), "Tin", "Tout")
      .cpu([](KernelContext& c) {
        Table& table = table_of(c.in(0));
        if (table.type.fixed) return fill_table(table, c.in(1), c.in(2));
        table.check_contents(c.in(1), c.in(2));
        table.replace(c.in(1), c.in(2));
      })
      .stateful()
      .doc("Replaces the contents of a table.");
}

namespace lookup {

KeyValueTensorInitializer::KeyValueTensorInitializer(const Operand& keys, const Operand& values, DType key_dtype,
                                                     DType value_dtype) {
  const auto as = [](const Operand& x, DType dtype) {
    if (dtype == DType::invalid) return x.value();
    return x.is_literal() ? x.as(dtype) : cast(*x.tensor(), dtype);
  };
  composed(keys.where(), [&] {
    this->keys = as(keys, key_dtype);
    this->values = as(values, value_dtype);
  });
}

TextFileInitializer::TextFileInitializer(const std::string& filename, DType key_dtype, int64_t key_index,
                                         DType value_dtype, int64_t value_index, const TextFileOptions& o,
                                         SourceSite where) {
  composed(where, [&] {
    try {
      std::tie(keys, values) = read_columns(filename, key_dtype, value_dtype,
                                            {.key_index = key_index,
                                             .value_index = value_index,
                                             .vocab_size = o.vocab_size,
                                             .delimiter = o.delimiter,
                                             .offset = o.value_index_offset});
    } catch (const Error& e) {
      throw Error(e.code(), std::string("[TextFileInitializer] ") + e.what());
    }
  });
}

StaticVocabularyTable::StaticVocabularyTable(const TableInitializer& initializer, int64_t num_oov_buckets,
                                             DType lookup_key_dtype, const std::string& name, SourceSite where)
    : table_(initializer, Operand(int64_t{-1}, where), name),
      key_dtype_(lookup_key_dtype == DType::invalid ? initializer.keys.dtype() : lookup_key_dtype),
      table_key_dtype_(initializer.keys.dtype()),
      num_oov_buckets_(num_oov_buckets) {
  composed(where, [&] {
    if (num_oov_buckets < 1) {
      throw invalid_argument("[StaticVocabularyTable] num_oov_buckets must be positive, got {}", num_oov_buckets);
    }
    if (initializer.values.dtype() != DType::int64) {
      throw invalid_argument("[StaticVocabularyTable] the values must be int64, got {}",
                             dtype_name(initializer.values.dtype()));
    }
    const bool text = key_dtype_ == DType::string;
    if (text != (table_key_dtype_ == DType::string) || (!text && !is_integer(key_dtype_))) {
      throw invalid_argument("[StaticVocabularyTable] keys of {} cannot be looked up as {}",
                             dtype_name(table_key_dtype_), dtype_name(key_dtype_));
    }
  });
}

Tensor StaticVocabularyTable::lookup(const Operand& keys) const {
  return composed(keys.where(), [&]() -> Tensor {
    const Tensor given = keys.is_literal() ? keys.as(key_dtype_) : *keys.tensor();
    if (given.dtype() != key_dtype_) {
      throw invalid_argument("[StaticVocabularyTable] keys must be {}, got {}", dtype_name(key_dtype_),
                             dtype_name(given.dtype()));
    }
    const Tensor x = given.dtype() == table_key_dtype_ ? given : cast(given, table_key_dtype_);
    const Tensor ids = table_.lookup(x);
    const Tensor text = x.dtype() == DType::string ? x : strings::as_string(x);
    const Tensor buckets = strings::to_hash_bucket_fast(text, num_oov_buckets_) + table_of(table_.handle()).size();
    return where(equal(ids, Tensor(int64_t{-1})), buckets, ids);
  });
}

int64_t StaticVocabularyTable::size() const { return table_of(table_.handle()).size() + num_oov_buckets_; }

}  // namespace lookup
}  // namespace runnel
