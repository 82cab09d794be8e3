#include "runnel/op/axes.h"

#include <algorithm>
#include <limits>

namespace runnel {
namespace {

Tensor pack(const Dims& values, const Shape& shape) {
  const bool small = std::all_of(values.begin(), values.end(), [](int64_t v) {
    return v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
  });
  Tensor t = Tensor::empty(small ? DType::int32 : DType::int64, shape);
  if (small) {
    std::copy(values.begin(), values.end(), t.mutable_data<int32_t>());
  } else {
    std::copy(values.begin(), values.end(), t.mutable_data<int64_t>());
  }
  return t;
}

}  // namespace

Tensor int_vector(const Dims& values) { return pack(values, Shape{static_cast<int64_t>(values.size())}); }
Tensor int_scalar(int64_t value) { return pack({value}, {}); }

Tensor ShapeArg::tensor() const { return tensor_.defined() ? tensor_ : int_vector(dims_); }

}  // namespace runnel
