#pragma once

// Internal: what events of a profile are called in files. TensorBoard's profile plugin goes by names:
// "dense/MatMul:MatMul" is an op, "Iterator::Batch::Map" a stage of a pipeline, "IteratorGetNext:IteratorGetNext"
// waiting for input. docs/formats/profile.md
#include <string>
#include <string_view>

#include "runnel/base/profile.h"

namespace runnel::io {

RUNNEL_API const char* profile_kind_name(profile::Kind kind);  // "input_wait"
// False where no kind is called so.
RUNNEL_API bool profile_kind_from_name(std::string_view name, profile::Kind* kind);

// Does the event stand for the work of one op, so that the tables of ops count it?
inline bool is_op_kind(profile::Kind kind) {
  return kind == profile::Kind::op || kind == profile::Kind::node || kind == profile::Kind::chain;
}

// The name by which TensorBoard's plugin knows the event.
RUNNEL_API std::string tensorflow_event_name(const profile::Event& event);
// The other way: sets the name, op_type and kind that such a name says. A step cannot be told by its name.
RUNNEL_API void take_tensorflow_name(std::string_view name, profile::Event* event);

}  // namespace runnel::io
