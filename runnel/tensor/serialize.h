#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runnel/tensor/tensor.h"

namespace runnel {

// A tensor as the bytes of TensorFlow's TensorProto, and back. Parsing throws an Error (data_loss for bytes that are no
// such message, invalid_argument for a message that makes no tensor, resource_exhausted past max_bytes: a short message
// may name a huge tensor). Handles (resource, variant) have no bytes.
RUNNEL_API std::string serialize_tensor_proto(const Tensor& tensor);
RUNNEL_API Tensor parse_tensor_proto(std::string_view bytes, size_t max_bytes = size_t{1} << 34);

}  // namespace runnel
