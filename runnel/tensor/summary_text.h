#pragma once

#include <string>

#include "runnel/tensor/tensor.h"

namespace runnel {

// What TensorFlow's print and strings.format show of a tensor: "[1 2 3]", rows on lines of their own, and of each
// dimension the first and last `summarize` elements with "..." between (all of them when it is negative).
RUNNEL_API std::string summary_text(const Tensor& t, int64_t summarize = 3);

}  // namespace runnel
