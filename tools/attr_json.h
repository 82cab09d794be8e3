#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runnel/op/attr.h"

namespace runnel::tools {

// An attribute's value as JSON: dtypes by name, shapes as lists (null: unknown rank, -1: unknown size), tensors as
// {"dtype", "shape", "values"}, numbers JSON has not ("inf", "-inf", "nan") as strings.
nlohmann::json attr_to_json(const AttrValue& value);
// Back again; `type` is what attr_type_name() calls it. Throws Error when the JSON does not fit.
AttrValue attr_from_json(const nlohmann::json& json, const std::string& type);

}  // namespace runnel::tools
