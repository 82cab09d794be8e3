#pragma once

// Sizes of images, which a traced function may not know: whole numbers where they are known, else int32 tensors.
#include <algorithm>
#include <optional>
#include <string>

#include "runnel/op/axes.h"
#include "runnel/op/context.h"
#include "runnel/op/operand.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {

class Extent {
 public:
  Extent(int64_t value) : value_(value) {}  // NOLINT: implicit
  explicit Extent(Tensor t) {
    if (const Tensor* known = t.known_value()) {
      value_ = int_values(*known)[0];
    } else {
      tensor_ = cast(t, DType::int32);
    }
  }
  explicit Extent(const Operand& o) : Extent(o.value()) {}

  bool known() const { return !tensor_.defined(); }
  int64_t value() const { return value_; }
  Tensor tensor() const { return known() ? int_scalar(value_) : tensor_; }

  friend Extent operator+(const Extent& a, const Extent& b) {
    return a.known() && b.known() ? Extent(a.value_ + b.value_) : Extent(a.tensor() + b.tensor());
  }
  friend Extent operator-(const Extent& a, const Extent& b) {
    return a.known() && b.known() ? Extent(a.value_ - b.value_) : Extent(a.tensor() - b.tensor());
  }
  Extent half() const { return known() ? Extent(value_ / 2) : Extent(floordiv(tensor_, 2)); }  // of values >= 0
  friend Extent max(const Extent& a, const Extent& b) {
    return a.known() && b.known() ? Extent(std::max(a.value_, b.value_)) : Extent(maximum(a.tensor(), b.tensor()));
  }
  friend Extent min(const Extent& a, const Extent& b) {
    return a.known() && b.known() ? Extent(std::min(a.value_, b.value_)) : Extent(minimum(a.tensor(), b.tensor()));
  }

 private:
  int64_t value_ = 0;
  Tensor tensor_;
};

// Several as one argument of an op.
inline ShapeArg shape_of_extents(std::initializer_list<Extent> list) {
  Dims dims;
  std::vector<Tensor> tensors;
  bool known = true;
  for (const Extent& e : list) {
    known = known && e.known();
    if (known) dims.push_back(e.value());
  }
  if (known) return ShapeArg(dims);
  for (const Extent& e : list) tensors.push_back(e.tensor());
  return ShapeArg(stack(tensors));
}

// One image or a batch of them, always with the dimension of the batch. `what` is the function, for errors.
class ImageBatch {
 public:
  ImageBatch(const Operand& image, const char* what);

  const Tensor& images() const { return images_; }
  bool single() const { return single_; }
  Extent size(int axis) const;  // 0 batch, 1 height, 2 width, 3 channels
  Extent height() const { return size(1); }
  Extent width() const { return size(2); }
  // A result with the batch taken away again where there was none.
  Tensor unbatched(const Tensor& images) const;

 private:
  Tensor images_;
  bool single_ = false;
};

}  // namespace runnel
