#pragma once

// Datasets of tables in files of comma-separated text.
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/data/file_sources.h"

namespace runnel::data {

// The columns of a table: for each a dtype (every field must be filled) or a value that stands for empty fields.
//   {int32, 0.f, "unknown"}
class RUNNEL_API CsvColumns {
 public:
  class RUNNEL_API Column {
   public:
    Column(DType dtype);  // NOLINT: implicit
    template <class T>
      requires(!std::same_as<std::decay_t<T>, DType> && std::convertible_to<T, Tensor>)
    Column(T&& value) : value_(std::forward<T>(value)) {}  // NOLINT
    const Tensor& value() const { return value_; }

   private:
    Tensor value_;
  };

  CsvColumns(std::initializer_list<Column> columns);                            // NOLINT
  CsvColumns(std::vector<Tensor> defaults) : defaults_(std::move(defaults)) {}  // NOLINT: see io::decode_csv
  const std::vector<Tensor>& defaults() const { return defaults_; }

 private:
  std::vector<Tensor> defaults_;
};

// The fields of a row, or the columns of a batch of rows: a vector whose [] is an Error where there is no such field.
class CsvFields : public std::vector<Tensor> {
 public:
  using vector::vector;
  CsvFields(std::vector<Tensor> fields) : vector(std::move(fields)) {}  // NOLINT: implicit

  const Tensor& operator[](size_t i) const { return data()[checked(i)]; }
  Tensor& operator[](size_t i) { return data()[checked(i)]; }

 private:
  size_t checked(size_t i) const {
    if (i >= size()) [[unlikely]] {
      no_field(i);
    }
    return i;
  }
  [[noreturn]] RUNNEL_API void no_field(size_t i) const;
};

}  // namespace runnel::data

// A list, as the vector that it is.
template <>
inline constexpr bool runnel::structure::is_vector<runnel::data::CsvFields> = true;

namespace runnel::data {

// A scalar for each column.
RUNNEL_API Dataset<CsvFields> csv(const Paths& paths, const CsvColumns& columns, const CsvOptions& options = {},
                                  Env& env = Env::posix(), SourceSite where = SourceSite::current());

namespace experimental {

// csv() by the name that tf.data.experimental has for it.
class CsvDataset : public Dataset<CsvFields> {
 public:
  CsvDataset(const Paths& paths, const CsvColumns& record_defaults, const CsvOptions& options = {},
             Env& env = Env::posix(), SourceSite where = SourceSite::current())
      : Dataset(csv(paths, record_defaults, options, env, where)) {}
};

using CsvBatch = std::map<std::string, Tensor>;  // columns by name, each with a row for every record

namespace detail {
RUNNEL_API Dataset<CsvBatch, Tensor> labelled_csv(const FilePatterns& file_pattern, int64_t batch_size,
                                                  const std::string& label_name, const MakeCsvOptions& options,
                                                  SourceSite where);
}  // namespace detail

// Shuffled batches of the columns of files with a head line, by their names. Dtypes are found by reading the first
// rows. It never ends unless num_epochs says so.
RUNNEL_API Dataset<CsvBatch> make_csv_dataset(const FilePatterns& file_pattern, int64_t batch_size,
                                              const MakeCsvOptions& options = {},
                                              SourceSite where = SourceSite::current());
// {the other columns, the column `label_name`}: what fit takes. (A template, so that braces mean options.)
template <std::convertible_to<std::string> Label>
Dataset<CsvBatch, Tensor> make_csv_dataset(const FilePatterns& file_pattern, int64_t batch_size,
                                           const Label& label_name, const MakeCsvOptions& options = {},
                                           SourceSite where = SourceSite::current()) {
  return detail::labelled_csv(file_pattern, batch_size, label_name, options, where);
}

}  // namespace experimental
}  // namespace runnel::data
