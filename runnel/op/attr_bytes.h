#pragma once

#include <string>
#include <string_view>

#include "runnel/op/attr.h"

namespace runnel {

// An attribute as the bytes of TensorFlow's AttrValue, and back as a value of the type of `like`.
RUNNEL_API std::string serialize_attr(const AttrValue& value);
RUNNEL_API AttrValue parse_attr(std::string_view bytes, const AttrValue& like);

}  // namespace runnel
