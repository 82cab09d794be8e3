#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runnel/op/fields.h"
#include "runnel/tensor/tensor.h"

namespace runnel::data {

inline constexpr int AUTOTUNE = -1;  // chosen while the pipeline runs
namespace experimental {
using data::AUTOTUNE;  // its older name
}  // namespace experimental
inline constexpr int64_t INFINITE_CARDINALITY = -1;
inline constexpr int64_t UNKNOWN_CARDINALITY = -2;

// What holds for a whole pipeline; set with Dataset::with_options, where the last call decides.
struct DatasetOptions {
  int threads = 0;
  int64_t byte_budget = 0;
  std::optional<bool> deterministic = {};
  static constexpr auto fields() {
    using O = DatasetOptions;
    return field_list(
        field("threads", &O::threads, "that AUTOTUNE may keep busy; 0: the CPUs of this process"),
        field("byte_budget", &O::byte_budget,
              "of shuffle buffers, prefetched elements and caches in memory; 0: a quarter of the RAM"),
        field("deterministic", &O::deterministic, "false: parallel stages may hand on elements in another order"));
  }
};

struct MapOptions {
  int num_parallel_calls = 0;
  std::optional<bool> deterministic = {};
  static constexpr auto fields() {
    using O = MapOptions;
    return field_list(
        field("num_parallel_calls", &O::num_parallel_calls, "0: one call after the other; -1: AUTOTUNE"),
        field("deterministic", &O::deterministic, "false: results may come in the order in which they are ready"));
  }
};

struct BatchOptions {
  bool drop_remainder = false;
  int num_parallel_calls = 0;
  static constexpr auto fields() {
    using O = BatchOptions;
    return field_list(
        field("drop_remainder", &O::drop_remainder, "leave out a last batch that is smaller than the others"),
        field("num_parallel_calls", &O::num_parallel_calls,
              "batches made at a time; 0: one after the other; -1: AUTOTUNE"));
  }
};

struct ShuffleOptions {
  std::optional<int64_t> seed = {};
  bool reshuffle_each_iteration = true;
  static constexpr auto fields() {
    using O = ShuffleOptions;
    return field_list(field("seed", &O::seed, "without one it is drawn from the program's generator"),
                      field("reshuffle_each_iteration", &O::reshuffle_each_iteration, "every pass has another order"));
  }
};

struct InterleaveOptions {
  int64_t cycle_length = 0;
  int64_t block_length = 1;
  int num_parallel_calls = 0;
  std::optional<bool> deterministic = {};
  static constexpr auto fields() {
    using O = InterleaveOptions;
    return field_list(
        field("cycle_length", &O::cycle_length,
              "elements of the input that are worked on at a time; 0: the CPUs of this process"),
        field("block_length", &O::block_length, "elements taken from one before it is the turn of the next"),
        field("num_parallel_calls", &O::num_parallel_calls, "0: one call after the other; -1: AUTOTUNE"),
        field("deterministic", &O::deterministic, "false: elements may come in the order in which they are ready"));
  }
};

struct WindowOptions {
  int64_t shift = 0;
  int64_t stride = 1;
  bool drop_remainder = false;
  static constexpr auto fields() {
    using O = WindowOptions;
    return field_list(
        field("shift", &O::shift, "from the beginning of a window to that of the next; 0: the size of the window"),
        field("stride", &O::stride, "from an element of a window to the next"),
        field("drop_remainder", &O::drop_remainder, "leave out last windows that are smaller than the others"));
  }
};

struct PaddedBatchOptions {
  std::vector<PartialShape> padded_shapes = {};
  std::vector<Tensor> padding_values = {};
  bool drop_remainder = false;
  static constexpr auto fields() {
    using O = PaddedBatchOptions;
    return field_list(
        field("padded_shapes", &O::padded_shapes,
              "for each tensor of an element, in order; without them as large as the largest of the batch"),
        field("padding_values", &O::padding_values, "likewise: what fills; without them zeros or \"\""),
        field("drop_remainder", &O::drop_remainder, "leave out a last batch that is smaller than the others"));
  }
};

// How files are read.
template <class O>
constexpr auto file_fields() {
  return field_list(
      field("compression_type", &O::compression_type, "\"\", \"GZIP\" or \"ZLIB\""),
      field("buffer_size", &O::buffer_size, "bytes read at a time; 0: as the library sees fit"),
      field("num_parallel_reads", &O::num_parallel_reads, "files read at a time; 0: one after the other"));
}

struct TextLineOptions {
  std::string compression_type = {};
  int64_t buffer_size = 0;
  int num_parallel_reads = 0;
  static constexpr auto fields() { return file_fields<TextLineOptions>(); }
};

struct FixedLengthOptions {
  int64_t record_bytes = 0;
  int64_t header_bytes = 0;
  int64_t footer_bytes = 0;
  std::string compression_type = {};
  int64_t buffer_size = 0;
  int num_parallel_reads = 0;
  static constexpr auto fields() {
    using O = FixedLengthOptions;
    return joined_fields(field_list(field("record_bytes", &O::record_bytes, "the size of a record"),
                                    field("header_bytes", &O::header_bytes, "to skip at the beginning of each file"),
                                    field("footer_bytes", &O::footer_bytes, "to skip at the end of each file")),
                         file_fields<O>());
  }
};

struct CsvOptions {
  bool header = false;
  std::string field_delim = ",";
  bool use_quote_delim = true;
  std::string na_value = {};
  std::vector<int64_t> select_cols = {};
  std::string compression_type = {};
  int64_t buffer_size = 0;
  int num_parallel_reads = 0;
  int num_parallel_calls = 0;
  static constexpr auto fields() {
    using O = CsvOptions;
    return joined_fields(field_list(field("header", &O::header, "skip the first record of each file"),
                                    field("field_delim", &O::field_delim, "what stands between two fields"),
                                    field("use_quote_delim", &O::use_quote_delim, "quotes hold a field together"),
                                    field("na_value", &O::na_value, "text that counts as an empty field, beside \"\""),
                                    field("select_cols", &O::select_cols, "columns to read, rising; empty: all")),
                         file_fields<O>(),
                         field_list(field("num_parallel_calls", &O::num_parallel_calls, "threads that parse")));
  }
};

struct MakeCsvOptions {
  std::vector<std::string> column_names = {};
  std::vector<Tensor> column_defaults = {};
  std::vector<std::string> select_columns = {};
  std::string field_delim = ",";
  bool use_quote_delim = true;
  std::string na_value = {};
  bool header = true;
  std::optional<int64_t> num_epochs = {};
  bool shuffle = true;
  int64_t shuffle_buffer_size = 10000;
  std::optional<int64_t> shuffle_seed = {};
  int64_t prefetch_buffer_size = AUTOTUNE;
  int num_parallel_reads = 0;
  int64_t num_rows_for_inference = 100;
  std::string compression_type = {};
  bool ignore_errors = false;
  static constexpr auto fields() {
    using O = MakeCsvOptions;
    return field_list(
        field("column_names", &O::column_names, "of all columns of the files; empty: the head line of the first file"),
        field("column_defaults", &O::column_defaults, "for each column that is read, as csv takes them; empty: found"),
        field("select_columns", &O::select_columns, "names of the columns to read; empty: all"),
        field("field_delim", &O::field_delim, "what stands between two fields"),
        field("use_quote_delim", &O::use_quote_delim, "quotes hold a field together"),
        field("na_value", &O::na_value, "text that counts as an empty field, beside \"\""),
        field("header", &O::header, "each file begins with a line of names"),
        field("num_epochs", &O::num_epochs, "passes over the files; without it there is no end"),
        field("shuffle", &O::shuffle, "files and rows come in random order"),
        field("shuffle_buffer_size", &O::shuffle_buffer_size, "rows among which the next one is drawn"),
        field("shuffle_seed", &O::shuffle_seed, "without one it is drawn from the program's generator"),
        field("prefetch_buffer_size", &O::prefetch_buffer_size, "batches made ahead; -1: AUTOTUNE"),
        field("num_parallel_reads", &O::num_parallel_reads, "files read at a time; 0: one after the other"),
        field("num_rows_for_inference", &O::num_rows_for_inference, "rows that decide about dtypes"),
        field("compression_type", &O::compression_type, "\"\", \"GZIP\" or \"ZLIB\""),
        field("ignore_errors", &O::ignore_errors, "rows that cannot be parsed are left out"));
  }
};

struct RecordOptions {
  std::string compression_type = {};
  int64_t buffer_size = 0;
  int num_parallel_reads = 0;
  static constexpr auto fields() { return file_fields<RecordOptions>(); }
};

}  // namespace runnel::data
