#pragma once

// What the declarations of ops on images share.
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

inline constexpr Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, Half, BFloat16, float, double> pixel_types;

// An image for samples: no two neighbours are equal.
inline Tensor sample_image(const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>((i * 7 + 3) % 11);
  return Tensor::of<float>(v, shape);
}

}  // namespace runnel
