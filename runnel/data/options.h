#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel::data {

inline constexpr int AUTOTUNE = -1;  // chosen while the pipeline runs
inline constexpr int64_t INFINITE_CARDINALITY = -1;
inline constexpr int64_t UNKNOWN_CARDINALITY = -2;

// What holds for a whole pipeline; set with Dataset::with_options, where the last call decides.
struct DatasetOptions {
  int threads = 0;          // that AUTOTUNE may keep busy; 0: the CPUs of this process
  int64_t byte_budget = 0;  // of shuffle buffers, prefetched elements and caches in memory; 0: a quarter of the RAM
  std::optional<bool> deterministic = {};  // false: parallel stages may hand on elements in another order
};

struct MapOptions {
  int num_parallel_calls = 0;              // 0: one call after the other
  std::optional<bool> deterministic = {};  // false: results may come in the order in which they are ready
};

struct BatchOptions {
  bool drop_remainder = false;
  int num_parallel_calls = 0;
};

struct ShuffleOptions {
  std::optional<int64_t> seed = {};  // without one it is drawn from the program's generator
  bool reshuffle_each_iteration = true;
};

struct InterleaveOptions {
  int64_t cycle_length = 0;  // elements of the input that are worked on at a time; 0: the CPUs of this process
  int64_t block_length = 1;
  int num_parallel_calls = 0;
  std::optional<bool> deterministic = {};
};

struct WindowOptions {
  int64_t shift = 0;  // 0: the size of the window
  int64_t stride = 1;
  bool drop_remainder = false;
};

// For each tensor of an element, in order; nothing: as large as the largest of the batch, filled with zeros or "".
struct PaddedBatchOptions {
  std::vector<PartialShape> padded_shapes = {};
  std::vector<Tensor> padding_values = {};
  bool drop_remainder = false;
};

struct TextLineOptions {
  std::string compression_type = {};  // "", "GZIP" or "ZLIB"
  int64_t buffer_size = 0;            // bytes read at a time; 0: as the library sees fit
  int num_parallel_reads = 0;         // files read at a time; 0: one after the other
};
struct FixedLengthOptions {
  int64_t record_bytes = 0;
  int64_t header_bytes = 0, footer_bytes = 0;  // of each file, passed over
  std::string compression_type = {};
  int64_t buffer_size = 0;
  int num_parallel_reads = 0;
};
struct CsvOptions {
  bool header = false;  // the first record of each file is passed over
  std::string field_delim = ",";
  bool use_quote_delim = true;
  std::string na_value = {};              // text that counts as no value, beside ""
  std::vector<int64_t> select_cols = {};  // columns to read, rising; empty: all
  std::string compression_type = {};
  int64_t buffer_size = 0;
  int num_parallel_reads = 0;
  int num_parallel_calls = 0;  // threads that parse
};
struct RecordOptions {
  std::string compression_type = {};
  int64_t buffer_size = 0;
  int num_parallel_reads = 0;
};

}  // namespace runnel::data
