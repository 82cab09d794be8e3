#pragma once

// Internal: reading features of many serialized Examples into columns, for the parsing ops.
#include <functional>
#include <string>
#include <vector>

#include "runnel/io/example_locator.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// Values of one feature, row after row, of one dtype.
struct Column {
  std::vector<float> floats;
  std::vector<int64_t> int64s;
  std::vector<Bytes> strings;
  std::vector<int64_t> counts;  // per row
};

// One feature to read.
struct FeaturePlan {
  std::string_view key;
  DType dtype = DType::float32;      // float32, int64 or string
  int64_t elements = -1;             // exactly so many per row, or any number (-1)
  int64_t multiple = 1;              // of which the number must be, if it is free
  const Tensor* fallback = nullptr;  // for rows without the feature, if elements are fixed; null: an error
  // Where rows go: fixed ones into `dense` (row i at i * elements), others into columns.
  Tensor dense;
};

// Columns cut into chunks of consecutive rows, one per element of `chunks`; [chunk][plan].
struct ParsedColumns {
  std::vector<std::vector<Column>> chunks;

  int64_t total(size_t plan) const;    // values
  int64_t longest(size_t plan) const;  // row
  // Values of all rows as one vector.
  Tensor values(size_t plan, DType dtype) const;
  // Calls f(row, count) for all rows in order.
  template <class F>
  void each_row(size_t plan, F f) const {
    int64_t row = 0;
    for (const auto& chunk : chunks) {
      for (int64_t count : chunk[plan].counts) f(row++, count);
    }
  }
  // Rows padded to `width` values each with `pad`; `out` has rows * width elements.
  void pad_into(size_t plan, int64_t width, const Tensor& pad, const Tensor& out) const;
};

struct RecordNames {
  const Tensor* names;   // one per record, or empty
  const Bytes* records;  // as they were read
  // How errors call a record: by its name or its file, where it has one.
  std::string of(int64_t record) const;
};

// Reads all plans of records [0, n). Errors name the record and the feature.
ParsedColumns read_columns(const Bytes* records, int64_t n, const std::vector<FeaturePlan>& plans,
                           const RecordNames& names);

// Appends the elements of a list to a column of the dtype; returns how many. Throws Error saying what is wrong.
int64_t append_list(Column& column, DType dtype, io::wire::Kind kind, std::string_view list, const Bytes& owner);

const char* kind_name(io::wire::Kind kind);  // "int64s"
void check_feature_dtype(DType dtype, const char* what);

}  // namespace runnel
