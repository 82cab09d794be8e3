#pragma once

#include <string_view>

#include "runnel/op/operand.h"

namespace runnel {

struct TopK {
  Tensor values;
  Tensor indices;  // positions along the last dimension
};
struct Unique {
  Tensor y;    // the distinct values, in the order of their first appearance
  Tensor idx;  // for every element of x, its position in y
};
struct UniqueWithCounts {
  Tensor y;
  Tensor idx;
  Tensor count;  // how often every value of y appears
};

// Sorts along an axis; direction is "ASCENDING" or "DESCENDING". NaN comes last.
RUNNEL_API Tensor sort(const Operand& values, int axis = -1, std::string_view direction = "ASCENDING");
// The indices that sort along an axis; equal elements keep their order.
RUNNEL_API Tensor argsort(const Operand& values, int axis = -1, std::string_view direction = "ASCENDING",
                          bool stable = false);
// The distinct elements of a vector.
RUNNEL_API Unique unique(const Operand& x, DType out_idx = DType::int32);
RUNNEL_API UniqueWithCounts unique_with_counts(const Operand& x, DType out_idx = DType::int32);

namespace math {
// The k largest elements of the last dimension, largest first; of equal ones the lowest index comes first.
RUNNEL_API TopK top_k(const Operand& input, const Operand& k = 1, bool sorted = true, DType index_type = DType::int32);
}  // namespace math
namespace nn {
using math::top_k;
}

}  // namespace runnel
