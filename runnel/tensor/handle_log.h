#pragma once

#include <optional>

#include "runnel/tensor/tensor.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// Is told of every Tensor handle of this thread that is given another value or ends: traced blocks (IF, WHILE) learn
// from it which handles they change. Handles that are constructed are not reported.
class RUNNEL_API HandleLog {
 public:
  virtual ~HandleLog() = default;
  virtual void assigned(Tensor* handle) = 0;  // before it changes
  virtual void destroyed(Tensor* handle) = 0;
};

// While it lives, this log is told, or nobody (null).
class RUNNEL_API HandleLogScope {
 public:
  explicit HandleLogScope(HandleLog* log);
  ~HandleLogScope();
  HandleLogScope(const HandleLogScope&) = delete;
  HandleLogScope& operator=(const HandleLogScope&) = delete;

 private:
  int change_;  // of the number of threads with a log
  ContextScope<&ThreadContext::handle_log> scope_;
};

// While it lives, assignments of this thread are not logged: those of the library itself, whose handles outlive a block
// but are no part of the program. The log still hears of handles that end, which it may have noted before.
class RUNNEL_API UnloggedHandles {
 public:
  UnloggedHandles() {
    if (detail::handles_are_logged()) [[unlikely]] {
      begin();
    }
  }

 private:
  class EndsOnly : public HandleLog {
   public:
    void assigned(Tensor*) override {}
    void destroyed(Tensor* handle) override { outer->destroyed(handle); }
    HandleLog* outer = nullptr;
  };
  void begin();
  EndsOnly ends_only_;
  std::optional<HandleLogScope> scope_;
};

}  // namespace runnel
