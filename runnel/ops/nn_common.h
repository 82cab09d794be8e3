#pragma once

// What the nn families share.
#include <string>

#include "runnel/base/format.h"
#include "runnel/tensor/shape.h"

namespace runnel {

// Activations are channels-last everywhere; another layout is refused.
inline void check_data_format(const std::string& format, const char* channels_last) {
  if (format == channels_last) return;
  throw make_error(Code::unimplemented, "data_format \"{}\" is not supported: tensors are {}", format, channels_last);
}

// Row i belongs to the class labels[i]: an Error where there is no such class.
template <class Label>
void check_labels(const Label* labels, int64_t rows, int64_t classes) {
  for (int64_t i = 0; i < rows; ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    throw invalid_argument("label {} (number {}) is outside the valid range [0, {})", labels[i], i, classes);
  }
}

inline int64_t last_dim(const PartialShape& s) { return s.has_rank() ? s[s.rank() - 1] : kUnknownDim; }

}  // namespace runnel
