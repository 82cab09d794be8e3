#pragma once

// Variables and tables that graphs name: nodes with the same container and name mean one object, which lives until it
// is destroyed by name.
#include <memory>
#include <string>

#include "runnel/base/function_ref.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// The object of that name, made unless it exists. One without a name is made anew and nobody else's. `kind` keeps
// variables and tables of one name apart.
std::shared_ptr<Object> named_resource(const char* kind, const std::string& container, const std::string& name,
                                       FunctionRef<std::shared_ptr<Object>()> make);
// Forgets the name of an object; false when it has none.
bool forget_resource(const Object* object);

}  // namespace runnel
