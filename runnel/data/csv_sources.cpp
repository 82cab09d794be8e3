#include "runnel/data/csv_sources.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "runnel/base/format.h"
#include "runnel/io/csv.h"
#include "runnel/io/glob.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/io.h"

namespace runnel::data {
namespace {

constexpr const char* kWho = "make_csv_dataset";

io::DecodeCsvOptions decode_options(const CsvOptions& options) {
  return {.field_delim = options.field_delim,
          .use_quote_delim = options.use_quote_delim,
          .na_value = options.na_value,
          .select_cols = options.select_cols};
}

std::vector<std::string> fields_of(const std::string& record, const CsvOptions& options) {
  std::vector<std::string_view> views;
  std::vector<std::string> storage;
  io::split_csv(record, {.delimiter = options.field_delim.at(0), .quotes = options.use_quote_delim}, views, storage);
  return {views.begin(), views.end()};
}

template <class T>
bool is_number(const std::string& text) {
  T value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// The narrowest dtype from `at_least` on that holds the text; their order is that of TensorFlow.
constexpr DType kDtypes[] = {DType::int32, DType::int64, DType::float32, DType::float64, DType::string};
size_t narrowest(const std::string& text, size_t at_least) {
  const bool fits[] = {is_number<int32_t>(text), is_number<int64_t>(text), is_number<float>(text),
                       is_number<double>(text), true};
  size_t k = at_least;
  while (!fits[k]) ++k;
  return k;
}

// A whole table: the options of its records and what its columns are.
struct CsvTable {
  std::vector<std::string> paths;
  CsvOptions options;
  std::vector<std::string> names;  // of the columns that are read
  std::vector<Tensor> defaults;
};

std::vector<std::string> matching_files(const std::vector<std::string>& patterns) {
  std::vector<std::string> found;
  for (const std::string& pattern : patterns) {
    for (std::string& path : io::matching_paths(pattern, Env::posix())) found.push_back(std::move(path));
  }
  if (found.empty()) throw make_error(Code::not_found, "[{}] no file fits {}", kWho, fmt::join(patterns, ", "));
  return found;
}

std::vector<std::string> column_names(const CsvTable& table, const MakeCsvOptions& options) {
  std::vector<std::string> names = options.column_names;
  if (names.empty()) {
    if (!options.header) throw invalid_argument("[{}] without a header, column_names must be given", kWho);
    CsvOptions head = table.options;
    head.header = false;
    auto it = Dataset<Tensor>(nodes::csv_records(Paths(table.paths[0]).node(), head, Env::posix())).make_iterator();
    const std::optional<Tensor> first = it.next();
    if (!first) throw invalid_argument("[{}] {} is empty", kWho, table.paths[0]);
    names = fields_of(first->item<std::string>(), table.options);
  }
  const std::set<std::string> different(names.begin(), names.end());
  if (different.size() != names.size())
    throw invalid_argument("[{}] two columns have one name: {}", kWho, fmt::join(names, ", "));
  return names;
}

// Keeps the columns of options.select_columns, in the order of the file.
void select_columns(CsvTable& table, const MakeCsvOptions& options) {
  if (options.select_columns.empty()) return;
  std::vector<int64_t> chosen;
  for (const std::string& name : options.select_columns) {
    const auto at = std::ranges::find(table.names, name);
    if (at == table.names.end()) {
      throw invalid_argument("[{}] select_columns has '{}', the columns are {}", kWho, name,
                             fmt::join(table.names, ", "));
    }
    chosen.push_back(at - table.names.begin());
  }
  std::ranges::sort(chosen);
  std::vector<std::string> names;
  for (const int64_t k : chosen) names.push_back(table.names[static_cast<size_t>(k)]);
  table.names = std::move(names);
  table.options.select_cols = std::move(chosen);
}

std::vector<Tensor> inferred_defaults(const CsvTable& table, int64_t rows) {
  constexpr size_t kNone = 0;
  std::vector<size_t> dtypes(table.names.size(), kNone);
  std::vector<bool> seen(table.names.size());
  auto records =
      Dataset<Tensor>(nodes::csv_records(Paths(table.paths).node(), table.options, Env::posix())).make_iterator();
  for (int64_t row = 0; row < rows; ++row) {
    const std::optional<Tensor> record = records.next();
    if (!record) break;
    const std::vector<std::string> fields = fields_of(record->item<std::string>(), table.options);
    for (size_t k = 0; k < table.names.size(); ++k) {
      const size_t column = table.options.select_cols.empty() ? k : static_cast<size_t>(table.options.select_cols[k]);
      if (column >= fields.size() || fields[column].empty() || fields[column] == table.options.na_value) continue;
      dtypes[k] = narrowest(fields[column], dtypes[k]);
      seen[k] = true;
    }
  }
  std::vector<Tensor> defaults;
  for (size_t k = 0; k < dtypes.size(); ++k) {
    const DType dtype = seen[k] ? kDtypes[dtypes[k]] : DType::string;
    defaults.push_back(dtype == DType::string ? Tensor("") : zeros(Shape(), dtype));
  }
  return defaults;
}

CsvTable read_table(const std::vector<std::string>& patterns, const MakeCsvOptions& options) {
  CsvTable table{.paths = matching_files(patterns)};
  table.options = {.header = options.header,
                   .field_delim = options.field_delim,
                   .use_quote_delim = options.use_quote_delim,
                   .na_value = options.na_value,
                   .compression_type = options.compression_type,
                   .num_parallel_reads = options.num_parallel_reads};
  table.names = column_names(table, options);
  select_columns(table, options);
  table.defaults = options.column_defaults.empty() ? inferred_defaults(table, options.num_rows_for_inference)
                                                   : options.column_defaults;
  if (table.defaults.size() != table.names.size()) {
    throw invalid_argument("[{}] {} column_defaults for {} columns", kWho, table.defaults.size(), table.names.size());
  }
  return table;
}

Dataset<experimental::CsvBatch> table_batches(const CsvTable& table, int64_t batch_size, const MakeCsvOptions& options,
                                              const SourceSite& where) {
  Dataset<Tensor> paths = from_tensor_slices(Tensor::of(table.paths));
  if (options.shuffle) paths = paths.shuffle(static_cast<int64_t>(table.paths.size()), {.seed = options.shuffle_seed});
  Dataset<CsvFields> rows = csv(paths, table.defaults, table.options, Env::posix(), where);
  if (options.ignore_errors) rows = rows.ignore_errors();
  if (options.shuffle) rows = rows.shuffle(options.shuffle_buffer_size, {.seed = options.shuffle_seed});
  const bool endless = !options.num_epochs;
  rows = rows.repeat(options.num_epochs.value_or(-1)).batch(batch_size, endless);
  const auto named = [names = table.names](const CsvFields& columns) {
    experimental::CsvBatch batch;
    for (size_t k = 0; k < names.size(); ++k) batch.emplace(names[k], columns[k]);
    return batch;
  };
  return rows.map(named);
}

}  // namespace

CsvColumns::Column::Column(DType dtype) : value_(Tensor::empty(dtype, {0})) {}
CsvColumns::CsvColumns(std::initializer_list<Column> columns) {
  for (const Column& column : columns) defaults_.push_back(column.value());
}

void CsvFields::no_field(size_t i) const {
  throw make_error(Code::out_of_range,
                   "[csv] there is no field {}: a row has {}, one for each of the columns that csv was given, numbered "
                   "from 0",
                   i, size());
}

Dataset<CsvFields> csv(const Paths& paths, const CsvColumns& columns, const CsvOptions& options, Env& env,
                       SourceSite where) {
  const Dataset<Tensor> records(
      detail::called_at(where, [&] { return nodes::csv_records(paths.node(), options, env); }));
  const auto parse = [defaults = columns.defaults(), decode = decode_options(options), where](Tensor record) {
    return CsvFields(io::decode_csv(Operand(record, where), defaults, decode));
  };
  return records.map(parse, options.num_parallel_calls, where);
}

Dataset<experimental::CsvBatch> experimental::make_csv_dataset(const FilePatterns& file_pattern, int64_t batch_size,
                                                               const MakeCsvOptions& options, SourceSite where) {
  return composed(where, [&] {
    return table_batches(read_table(file_pattern.all(), options), batch_size, options, where)
        .prefetch(options.prefetch_buffer_size);
  });
}

Dataset<experimental::CsvBatch, Tensor> experimental::detail::labelled_csv(const FilePatterns& file_pattern,
                                                                           int64_t batch_size,
                                                                           const std::string& label_name,
                                                                           const MakeCsvOptions& options,
                                                                           SourceSite where) {
  return composed(where, [&] {
    const CsvTable table = read_table(file_pattern.all(), options);
    if (std::ranges::find(table.names, label_name) == table.names.end()) {
      throw invalid_argument("[{}] the label '{}' is no column; they are {}", kWho, label_name,
                             fmt::join(table.names, ", "));
    }
    const auto split = [label_name](CsvBatch batch) {
      const Tensor label = batch.extract(label_name).mapped();
      return std::tuple{std::move(batch), label};
    };
    return table_batches(table, batch_size, options, where).map(split).prefetch(options.prefetch_buffer_size);
  });
}

}  // namespace runnel::data
