#pragma once

// Internal: the event of a profile that one call of an op makes.
#include <string_view>

#include "runnel/base/profile_scope.h"
#include "runnel/op/op_def.h"

namespace runnel {

// From here to the end of the block; what it refers to must stay where it is. Shapes, bytes and operations are those
// that the inputs and outputs have at the end.
class OpEvent {
 public:
  // `node`: its name in a graph, empty for an eager call.
  OpEvent(profile::Kind kind, std::string_view node, const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs,
          int num_outputs);
  ~OpEvent();
  OpEvent(const OpEvent&) = delete;
  OpEvent& operator=(const OpEvent&) = delete;

 private:
  double flops() const;

  const OpDef& op_;
  const Inputs inputs_;
  const void* const attrs_;
  Tensor* const outputs_;
  const int num_outputs_;
  const uint64_t recording_;
  profile::RawEvent event_;
};

}  // namespace runnel
