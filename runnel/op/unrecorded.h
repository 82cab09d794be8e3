#pragma once

#include "runnel/op/dispatch.h"

namespace runnel {

// Ops called while it lives are not recorded: a kernel or a custom gradient built of ops is one step for the tapes.
class Unrecorded {
 public:
  Unrecorded() : outer_(set_recorder(nullptr)) {}
  ~Unrecorded() { set_recorder(outer_); }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  Recorder* outer_;
};

}  // namespace runnel
