#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

// The axes parameter of reductions and their like: none (all axes), one, a list, or a tensor of them.
class RUNNEL_API Axes {
 public:
  Axes() = default;                                                                          // all
  Axes(int axis) : list_({axis}), given_(true) {}                                            // NOLINT: implicit
  Axes(int64_t axis) : list_({axis}), given_(true) {}                                        // NOLINT
  Axes(std::initializer_list<int64_t> axes) : list_(axes), given_(true) {}                   // NOLINT
  Axes(const std::vector<int64_t>& axes) : list_(axes.begin(), axes.end()), given_(true) {}  // NOLINT
  Axes(const Tensor& axes) : tensor_(axes), given_(true) {}                                  // NOLINT

  bool given() const { return given_; }
  // An int32 vector (or the tensor that was given); all axes of `x` when none was named.
  Tensor tensor_for(const Tensor& x) const;  // defined with the array ops

 private:
  Dims list_;
  Tensor tensor_;
  bool given_ = false;
};

// One size of a shape: a number, or an integer scalar tensor (which may be traced).
class ShapeSize {
 public:
  ShapeSize(int64_t size) : number_(size) {}  // NOLINT: implicit
  template <std::floating_point T>
  ShapeSize(T) = delete;  // it would be cut
  template <TensorIndex T>
  ShapeSize(const T& size) : tensor_(size) {}  // NOLINT
  bool is_tensor() const { return tensor_.has_value(); }
  int64_t number() const { return number_; }
  const Tensor& tensor() const { return *tensor_; }

 private:
  int64_t number_ = 0;
  std::optional<Tensor> tensor_;
};

// The parameter of ops that take a shape: sizes, numbers or tensors; a Shape; or an int32/int64 vector (which may be
// traced), in braces of its own or not.
//   zeros({2, 3}), zeros({shape(x)[0], 4}), zeros(x.shape()), zeros(shape(x)), zeros({shape(x)})
class RUNNEL_API ShapeArg {
 public:
  using Location = SourceSite;
  ShapeArg(std::initializer_list<ShapeSize> sizes, Location where = Location::current());  // NOLINT: implicit
  ShapeArg(const Shape& shape, Location where = Location::current())                       // NOLINT
      : dims_(shape.dims()), where_(where) {}
  ShapeArg(const Dims& dims, Location where = Location::current()) : dims_(dims), where_(where) {}  // NOLINT
  ShapeArg(const std::vector<int64_t>& dims, Location where = Location::current())                  // NOLINT
      : dims_(dims.begin(), dims.end()), where_(where) {}
  ShapeArg(const Tensor& shape, Location where = Location::current()) : tensor_(shape), where_(where) {}  // NOLINT

  // An int32 vector (int64 where a size needs it), or the tensor that was given.
  Tensor tensor() const;
  const Location& where() const { return where_; }  // the line of the call

 private:
  Dims dims_;
  Tensor tensor_;
  Location where_;
};

// A host vector of int32, or int64 where a value does not fit.
RUNNEL_API Tensor int_vector(const Dims& values);
RUNNEL_API Tensor int_scalar(int64_t value);

}  // namespace runnel
