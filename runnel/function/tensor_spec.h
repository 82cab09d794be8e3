#pragma once

#include <string>

#include "runnel/tensor/tensor.h"

namespace runnel {

// What a function expects of a tensor: tf.TensorSpec.
struct TensorSpec {
  PartialShape shape = {};
  DType dtype = DType::float32;
  std::string name = {};

  std::string str() const { return dtype_name(dtype) + shape.str(); }
};

}  // namespace runnel
