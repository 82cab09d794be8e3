#pragma once

#include <optional>

#include "runnel/op/operand.h"

namespace runnel {

struct BincountOptions {
  Tensor weights = {};           // shaped like arr: what every element adds (1 when not given), and the dtype
  int64_t minlength = -1;        // at least so many bins
  int64_t maxlength = -1;        // at most so many: larger values are left out
  DType dtype = DType::int32;    // of the result when there are no weights
  std::optional<int> axis = {};  // -1: count every row of a matrix by itself; 0 or nothing: everything together
  bool binary_output = false;    // 1 where a value appears, however often
};

namespace math {
// How often every value 0, 1, 2, ... appears in arr.
RUNNEL_API Tensor bincount(const Operand& arr, const BincountOptions& options = {});
// Row i, column j: how many (weighted) examples of class i were predicted as class j.
RUNNEL_API Tensor confusion_matrix(const Operand& labels, const Operand& predictions, int64_t num_classes = -1,
                                   const Tensor& weights = {}, DType dtype = DType::int32);
}  // namespace math

// How many values fall into each of nbins bins of equal width over value_range (a pair); values outside go to the first
// and last bin.
RUNNEL_API Tensor histogram_fixed_width(const Operand& values, const Operand& value_range, const Operand& nbins = 100,
                                        DType dtype = DType::int32);
// The bin of every value.
RUNNEL_API Tensor histogram_fixed_width_bins(const Operand& values, const Operand& value_range,
                                             const Operand& nbins = 100, DType dtype = DType::int32);

}  // namespace runnel
