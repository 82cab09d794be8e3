#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "runnel/base/export.h"

namespace runnel {

class CancellationScope;
class HandleLog;
class Interceptor;
class OutputDestination;
class RandomContext;
class Recorder;
struct SourceSite;
namespace compat::v1 {
struct OpenGraph;
}
namespace function_detail {
struct ActiveTrace;
}
namespace keras {
class CallScope;
class MaskScope;
}  // namespace keras
namespace profile {
class StepScope;
}
namespace summary {
struct Defaults;
}

// All that a thread keeps in mind between calls: who takes its ops, who is told of them, what they draw from and write
// to. Every thread begins with an empty one. docs/thread_context.md says how the slots compose.
struct ThreadContext {
  Interceptor* interceptor = nullptr;               // takes op calls instead of running them: the tracer
  Recorder* recorder = nullptr;                     // is told of op calls: the tapes of `tape_level`
  uint64_t tape_level = 0;                          // tapes of other levels are hidden
  HandleLog* handle_log = nullptr;                  // is told of assignments: a traced block
  OutputDestination* destination = nullptr;         // offers memory for results
  RandomContext* random = nullptr;                  // null: that of the program
  const CancellationScope* cancellation = nullptr;  // the innermost
  function_detail::ActiveTrace* tracing = nullptr;  // functions being traced, from the innermost
  compat::v1::OpenGraph* graph = nullptr;           // the default graph of v1, from the innermost
  keras::CallScope* layer_call = nullptr;           // calls of layers, from the innermost
  keras::MaskScope* masks = nullptr;                // where masks are kept
  const SourceSite* call_site = nullptr;            // of the composed function whose ops are being called
  const std::string* name_scope = nullptr;          // the names around, with slashes; null: none
  summary::Defaults* summary = nullptr;             // where summaries go, and their step
  profile::StepScope* step = nullptr;               // of training that events of profiles count to, the innermost
  bool worker = false;                              // does what another thread may be waiting for
  bool training = false;                            // as the layers around were told; part of a trace's signature

  // What a thread starts with that does a part of this one's work while this one waits.
  ThreadContext lent() const {
    ThreadContext clean;
    clean.cancellation = cancellation;
    clean.step = step;
    clean.worker = true;
    return clean;
  }
};

namespace detail {
// For the library itself, without a call; no constructor runs for it.
extern constinit thread_local ThreadContext current_context;
}  // namespace detail

RUNNEL_API ThreadContext& thread_context();  // of the thread that calls

// The one way to change the context: puts values into these slots and, when it ends, what was there before. It ends on
// the thread it began on, before whatever was there when it began.
//   const ContextScope<&ThreadContext::random> scope(&mine);
template <auto... Slots>
class ContextScope {
  template <class T>
  static T slot_type(T ThreadContext::*);

 public:
  explicit ContextScope(decltype(slot_type(Slots))... values) : outer_(exchange(values...)) {}
  ~ContextScope() {
    ThreadContext& context = thread_context();
    std::apply([&](const auto&... before) { ((context.*Slots = before), ...); }, outer_);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  using Values = std::tuple<decltype(slot_type(Slots))...>;
  static Values exchange(decltype(slot_type(Slots))... values) {
    ThreadContext& context = thread_context();
    return Values{std::exchange(context.*Slots, values)...};
  }
  Values outer_;
};

// Without slots: all of it, for work of another thread.
//   const ThreadContext lent = thread_context().lent();
//   pool.run([&] { const ContextScope<> guest(lent); work(); });
template <>
class ContextScope<> {
 public:
  explicit ContextScope(const ThreadContext& whole) : outer_(std::exchange(thread_context(), whole)) {}
  ~ContextScope() { thread_context() = outer_; }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  ThreadContext outer_;
};

}  // namespace runnel
