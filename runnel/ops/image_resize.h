#pragma once

// Shared by the ops that resize.
#include "runnel/op/context.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// [batch, height, width, channels] by a size {height, width}, input 1.
void resize_shape(InferContext& c);
// The same of images that have pixels and channels.
void image_resize_shape(InferContext& c);
// The gradient of resizing: the batch and the channels of input 0, the height and width of input 1.
void resize_grad_shape(InferContext& c);

// {height, width} of a batch of images, as an int32 vector.
Tensor height_and_width(const Tensor& images);

}  // namespace runnel
