#pragma once

// Internal: what the settings of layers that slide windows over images have in common.
#include <algorithm>
#include <string>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras {

// One positive value for every spatial dimension; a single one counts for all.
inline std::vector<int64_t> per_dimension(const std::vector<int64_t>& values, int dims, const char* layer,
                                          const char* setting) {
  const auto n = static_cast<size_t>(dims);
  if ((values.size() != 1 && values.size() != n) ||
      std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 1; })) {
    throw invalid_argument("[{}] {} must be 1 or {} positive numbers, got [{}]", layer, setting, dims,
                           comma_separated(values));
  }
  return values.size() == n ? values : std::vector<int64_t>(n, values[0]);
}

inline void require_channels_last(const std::string& data_format, const char* layer) {
  if (data_format == "channels_last") return;
  throw make_error(Code::unimplemented, "[{}] data_format \"{}\" is not supported: tensors are channels_last", layer,
                   data_format);
}

// Keras's "valid" and "same" as the ops spell them.
inline std::string op_padding(const std::string& padding, const char* layer) {
  if (padding == "valid") return "VALID";
  if (padding == "same") return "SAME";
  throw invalid_argument("[{}] padding must be \"valid\" or \"same\", got \"{}\"", layer, padding);
}

// Keras's refusal of windows that do not fit the input once: the layers after that would get nothing, and a model would
// be trained on nothing. Sizes that are not known yet count as good.
inline void require_output(const Tensor& output, const char* layer, const std::string& name,
                           const std::vector<int64_t>& window) {
  const PartialShape shape = output.partial_shape();
  for (int i = 1; shape.has_rank() && i < shape.rank() - 1; ++i) {
    if (shape[i] != 0) continue;
    throw invalid_argument(
        "[{}] One of the dimensions in the output is <= 0 due to downsampling in layer '{}': its windows of [{}] do "
        "not fit the input, and the output is {}. Make the input larger, use fewer or smaller windows, or padding "
        "\"same\"",
        layer, name, comma_separated(window), shape.str());
  }
}

// What is known of the shape of a tensor that a layer has checked to have this rank, where its rank was known.
inline PartialShape shape_of_rank(const Tensor& t, int rank) {
  const PartialShape shape = t.partial_shape();
  return shape.has_rank() ? shape : PartialShape::unknown_dims(rank);
}

}  // namespace runnel::keras
