#pragma once

#include "runnel/op/dispatch.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// The tapes of this thread record nothing while it lives; tapes made meanwhile do. A kernel or a callback built of ops
// is one step for the tapes around it.
class Unrecorded {
 public:
  Unrecorded() : scope_(nullptr, new_tape_level()) {}

 private:
  ContextScope<&ThreadContext::recorder, &ThreadContext::tape_level> scope_;
};

}  // namespace runnel
