#include "runnel/function/tracing_turn.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "runnel/base/format.h"
#include "runnel/base/log.h"

namespace runnel::function_detail {
namespace {

// The last resort against threads of the program that wait for each other where we cannot see it.
constexpr std::chrono::seconds kLongestWait{60};

// Held for a look or a note, never while anything is traced.
std::mutex turns_mutex;
std::condition_variable turns_changed;

// What a thread that traces waits for: a function, or, null, workers. It may do so several times, one inside the other.
std::multimap<const ThreadContext*, const Core*>& waits() {
  static std::multimap<const ThreadContext*, const Core*> all;
  return all;
}

}  // namespace

TracingTurn::TracingTurn(Core& function) : function_(function) {
  const ThreadContext* me = &thread_context();
  // Would a wait for the function be one for a thread that waits for this one, as far as can be known?
  const auto hopeless = [&] {
    for (const Core* f = &function_; f->traced_by_;) {
      if (f->traced_by_ == me) return true;
      const auto [first, last] = waits().equal_range(f->traced_by_);
      const Core* next = nullptr;
      for (auto it = first; it != last; ++it) {
        if (!it->second && thread_context().worker) return true;
        if (it->second) next = it->second;
      }
      if (!next) return false;
      f = next;
    }
    return false;
  };
  std::unique_lock lock(turns_mutex);
  if (function_.traced_by_ && !hopeless()) {
    const auto waiting = waits().emplace(me, &function_);
    turns_changed.notify_all();  // this wait may make that of others hopeless
    const bool in_time =
        turns_changed.wait_for(lock, kLongestWait, [&] { return !function_.traced_by_ || hopeless(); });
    waits().erase(waiting);
    if (!in_time) {
      log_warning("the function '{}' is traced by two threads at once: the first has taken {} s",
                  function_.options().name, kLongestWait.count());
    }
  }
  if (function_.traced_by_) return;
  function_.traced_by_ = me;
  taken_ = true;
}

TracingTurn::~TracingTurn() {
  if (!taken_) return;
  const std::lock_guard lock(turns_mutex);
  function_.traced_by_ = nullptr;
  turns_changed.notify_all();
}

WaitsForWorkers::WaitsForWorkers() : told_(thread_context().tracing != nullptr) {
  if (!told_) return;
  const std::lock_guard lock(turns_mutex);
  waits().emplace(&thread_context(), nullptr);
  turns_changed.notify_all();
}

WaitsForWorkers::~WaitsForWorkers() {
  if (!told_) return;
  const std::lock_guard lock(turns_mutex);
  const auto [first, last] = waits().equal_range(&thread_context());
  for (auto it = first; it != last; ++it) {
    if (it->second) continue;
    waits().erase(it);
    return;
  }
}

}  // namespace runnel::function_detail
