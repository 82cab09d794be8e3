#pragma once

#include "runnel/tensor/tensor.h"

namespace runnel {

// Is told of every Tensor handle of this thread that is given another value or ends: traced blocks (IF, WHILE) learn
// from it which handles they change. Handles that are constructed are not reported.
class RUNNEL_API HandleLog {
 public:
  virtual ~HandleLog() = default;
  virtual void assigned(Tensor* handle) = 0;  // before it changes
  virtual void destroyed(Tensor* handle) = 0;
};

// The log of the current thread. Returns what was there, for the caller to restore.
RUNNEL_API HandleLog* set_handle_log(HandleLog* log);

// While it lives, handles of this thread are not logged: those of the library itself, which outlive a block but are no
// part of the program.
class UnloggedHandles {
 public:
  UnloggedHandles() : active_(detail::handles_are_logged()) {
    if (active_) outer_ = set_handle_log(nullptr);
  }
  ~UnloggedHandles() {
    if (active_) set_handle_log(outer_);
  }
  UnloggedHandles(const UnloggedHandles&) = delete;
  UnloggedHandles& operator=(const UnloggedHandles&) = delete;

 private:
  bool active_;
  HandleLog* outer_ = nullptr;
};

}  // namespace runnel
