#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runnel/base/export.h"
#include "runnel/tensor/dtype.h"

namespace runnel {

// A dense row-major array to print. data points at elements of the dtype's C++ type (strings: Bytes).
struct ArrayView {
  DType dtype = DType::invalid;
  const void* data = nullptr;
  std::span<const int64_t> dims;
};

// NumPy's print options and their defaults.
struct ArrayFormat {
  int precision = 8;         // digits after the point, at most
  int64_t threshold = 1000;  // arrays of more elements are summarised
  int edge_items = 3;        // elements shown at each end of a summarised axis
  int line_width = 75;
  bool suppress = false;  // no scientific notation for small numbers
};

// str() and repr() of the NumPy array TensorFlow would hand out: "[1. 2.]", "array([1., 2.], dtype=float32)".
// A rank-0 array is written as its scalar by the first ("1.0").
RUNNEL_API std::string format_array(const ArrayView& array, const ArrayFormat& options = {});
RUNNEL_API std::string format_array_repr(const ArrayView& array, const ArrayFormat& options = {});

// "()", "(3,)", "(2, 3)"; a negative dimension is unknown: "(None, 3)".
RUNNEL_API std::string format_shape(std::span<const int64_t> dims);

// What TensorFlow prints for an eager tensor by str() and repr(), and for a variable (by both):
//   tf.Tensor([1. 2.], shape=(2,), dtype=float32)
//   <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
//   <tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>
RUNNEL_API std::string tensor_to_string(const ArrayView& array, const ArrayFormat& options = {});
RUNNEL_API std::string tensor_repr(const ArrayView& array, const ArrayFormat& options = {});
// A variable's own shape may leave dimensions open, so it is given apart from its value.
RUNNEL_API std::string variable_repr(std::string_view name, std::string_view shape, const ArrayView& value,
                                     const ArrayFormat& options = {});

}  // namespace runnel
