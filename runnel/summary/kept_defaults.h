#pragma once

// Internal: the writer of a thread for code that is called later, on any thread: the callables of a pipeline.
#include <functional>
#include <memory>
#include <utility>

#include "runnel/summary/writer.h"

namespace runnel::summary {

// What the thread has now, as a trace keeps it: the writer, the step (a variable is read each time) and whether the
// condition holds. Nothing where summaries are not recorded. The writer lives as long as this.
class RUNNEL_API KeptDefaults {
 public:
  KeptDefaults();
  explicit operator bool() const { return kept_ != nullptr; }

  // Calls f with them; what f sets with set_step ends with the call.
  template <class F>
  decltype(auto) call(const F& f) const {
    const Call scope(*kept_);
    return f();
  }

 private:
  class RUNNEL_API Call {
   public:
    explicit Call(const Defaults& kept);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Defaults mine_;  // several threads may be in such a call
    ContextScope<&ThreadContext::summary> scope_;
  };
  std::shared_ptr<const Defaults> kept_;
};

// The function, with these around each call.
template <class R, class... A>
std::function<R(A...)> with_kept_defaults(const KeptDefaults& kept, std::function<R(A...)> f) {
  if (!kept || !f) return f;
  return [f = std::move(f), kept](A... args) -> R {
    return kept.call([&]() -> R { return f(std::forward<A>(args)...); });
  };
}
// The same with what this thread has now.
template <class R, class... A>
std::function<R(A...)> with_kept_defaults(std::function<R(A...)> f) {
  return with_kept_defaults(KeptDefaults(), std::move(f));
}

}  // namespace runnel::summary
