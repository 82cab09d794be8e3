#pragma once

// Tensors and attributes as JSON that Python reads back without loss: bytes as hexadecimal text.
#include <nlohmann/json.hpp>
#include <vector>

#include "runnel/op/attr_value.h"
#include "runnel/tensor/tensor.h"

namespace runnel::interop {

std::string hex(const void* data, size_t size);

// {"d": "float32", "s": [2], "x": "0000803f..."}; of strings, "x" is a list. Of a list of tensors: list_to_json.
nlohmann::json tensor_to_json(const Tensor& t);
nlohmann::json list_to_json(const std::vector<Tensor>& items, DType element_dtype, const PartialShape& element_shape,
                            int64_t max_num_elements);
// Texts are hexadecimal; a float that JSON has no number for is text.
nlohmann::json attr_value_to_json(const AttrValue& value);

}  // namespace runnel::interop
