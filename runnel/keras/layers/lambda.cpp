#include "runnel/keras/layers/lambda.h"

#include "runnel/base/format.h"

namespace runnel::keras {

void Lambda::prepare() {
  if (!options_.function.defined()) throw invalid_argument("[Lambda] layer '{}' has no function", name());
}

Nest Lambda::call(const Nest& inputs, const CallArgs&) { return options_.function(inputs); }

Config Lambda::get_config() const {
  throw make_error(Code::failed_precondition,
                   "[Lambda] layer '{}' has a C++ function, which cannot be written down: make it a layer class with "
                   "get_config and from_config, and register it by register_keras_serializable",
                   name());
}

}  // namespace runnel::keras
