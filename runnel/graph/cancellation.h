#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "runnel/base/moved_from.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// Stops functions that run, from any thread. Copies are the same token.
//   CancellationToken token;
//   std::thread worker([&] { const CancellationScope scope(token); train(); });
//   token.cancel();
class RUNNEL_API CancellationToken {
 public:
  CancellationToken();
  void cancel() const { flag().store(true, std::memory_order_release); }
  bool cancelled() const { return flag().load(std::memory_order_acquire); }

 private:
  std::atomic<bool>& flag() const {
    if (!cancelled_) [[unlikely]]
      throw_moved_from("CancellationToken");
    return *cancelled_;
  }

  std::shared_ptr<std::atomic<bool>> cancelled_;
};

// Functions and sessions that this thread runs while it lives stop soon after the token is cancelled, between two nodes
// and between the iterations of loops, with an Error of code cancelled. What was assigned until then stays assigned;
// functions, sessions and variables can be used again. A node that runs is not interrupted. Scopes nest: the tokens of
// all of them count.
class RUNNEL_API CancellationScope {
 public:
  explicit CancellationScope(const CancellationToken& token);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

  // The innermost one of this thread, or null.
  static const CancellationScope* current() { return thread_context().cancellation; }
  bool cancelled() const {
    for (const CancellationScope* s = this; s; s = s->outer_) {
      if (s->token_.cancelled()) return true;
    }
    return false;
  }

 private:
  const CancellationToken token_;
  const CancellationScope* outer_;
  ContextScope<&ThreadContext::cancellation> scope_;
};

[[noreturn]] void throw_cancelled(const std::string& where);

}  // namespace runnel
