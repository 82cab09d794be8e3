#pragma once

// Internal: attributes as protobuf messages with TensorFlow's fields.
#include <runnel_pb/attr_value.pb.h>

#include "runnel/op/attr.h"

namespace runnel {

void attr_to_proto(const AttrValue& value, pb::AttrValue& proto);
// A value of the same type as `like` (an empty list in a file does not say of what). Floats are the shortest decimal
// that names the float32 of the file: 0.2 stays 0.2.
AttrValue attr_from_proto(const pb::AttrValue& proto, const AttrValue& like);

}  // namespace runnel
