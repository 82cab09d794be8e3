#pragma once

// Windows that slide over the spatial dimensions of [batch, spatial..., channels]: what convolutions and
// pooling share.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runnel/op/axes.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// One spatial dimension; kUnknownDim where a size is not known yet.
struct Window {
  int64_t in = kUnknownDim, size = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding
  int64_t out = kUnknownDim;
};

// The attributes of an op as TensorFlow spells them: lists over every dimension, batch and channels included.
struct WindowSpec {
  int dims;  // spatial dimensions
  const std::vector<int64_t>& strides;
  const std::vector<int64_t>& dilations;
  const std::string& padding;                               // SAME, VALID or EXPLICIT
  const std::vector<int64_t>* explicit_paddings = nullptr;  // null: EXPLICIT is not offered
};

using Windows = std::array<Window, 3>;

// Where the windows of the given sizes stand on an input (sizes of its spatial dimensions, kUnknownDim where
// unknown). Throws Error for a stride below 1, a window that does not fit.
Windows place_windows(const WindowSpec& spec, const Dims& in, const Dims& size);

// A parameter list of a public function (one value for all, one per spatial dimension, or one per dimension)
// as the attribute of the op. `what` names it in errors.
std::vector<int64_t> full_list(const std::vector<int64_t>& values, int dims, const char* op, const char* what);
// Explicit paddings likewise: before and after of every spatial dimension, or of every dimension.
std::vector<int64_t> full_paddings(const std::vector<int64_t>& values, int dims, const char* op);

// A vector with the shape of x: a constant where it is known already.
Tensor shape_vector(const Tensor& x);

// "NWC", "NHWC" or "NDHWC".
const char* channels_last_format(int dims);

}  // namespace runnel
