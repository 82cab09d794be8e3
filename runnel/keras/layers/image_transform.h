#pragma once

// Internal: geometry of images in terms of ops, for the layers that change images.
#include <string>

#include "runnel/tensor/tensor.h"

namespace runnel::keras {

struct AffineTransformOptions {
  std::string fill_mode = "reflect";  // what is outside: "reflect" dcba|abcd|dcba, "wrap" abcd|abcd|abcd, "nearest"
                                      // aaaa|abcd|dddd, "constant": fill_value
  std::string interpolation = "bilinear";  // or "nearest"
  double fill_value = 0;
};
void check_affine_options(const AffineTransformOptions& options, const char* layer);

// Pixel (x, y) of the result is the pixel of `images`, [batch, height, width, channels], at
// (a0 x + a1 y + a2, b0 x + b1 y + b2), where row i of `transforms`, float32 [batch, 6], is {a0, a1, a2, b0, b1, b2} of
// image i. TensorFlow's ImageProjectiveTransformV3 for transforms without perspective.
Tensor affine_transform(const Tensor& images, const Tensor& transforms, const AffineTransformOptions& options);

// The largest part in the middle of the images (one or a batch) that has the shape of height x width.
Tensor crop_to_aspect_ratio(const Tensor& images, int64_t height, int64_t width);

}  // namespace runnel::keras
