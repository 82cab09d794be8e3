#pragma once

// Internal: values as protobuf messages with TensorFlow's fields.
#include <runnel_pb/tensor.pb.h>
#include <runnel_pb/tensor_shape.pb.h>

#include <cstddef>

#include "runnel/tensor/tensor.h"

namespace runnel {

// References of TensorFlow 1 (numbers above 100) read as the type they refer to.
DType dtype_from_proto(int number);
pb::DataType dtype_to_proto(DType dtype);

PartialShape shape_from_proto(const pb::TensorShapeProto& proto);
void shape_to_proto(const PartialShape& shape, pb::TensorShapeProto& proto);

Tensor tensor_from_proto(const pb::TensorProto& proto, size_t max_bytes = size_t{1} << 34);
void tensor_to_proto(const Tensor& tensor, pb::TensorProto& proto);

}  // namespace runnel
