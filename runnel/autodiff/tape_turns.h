#pragma once

// Internal: how the threads that use one tape keep out of each other's way.
#include <atomic>
#include <thread>

namespace runnel {

// The thread that made a tape writes steps into it; any one thread at a time asks it for gradients. Steps are written,
// and questions begin and end, under a lock that is held for moments. An answer is worked out without the lock, for it
// runs ops and functions of the user: meanwhile a thread that would write finds out by asked_elsewhere().
class TapeTurns {
 public:
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

  // These under the lock. A thread may ask again while it asks.
  bool asked_elsewhere() const { return questions_ > 0 && asker_ != std::this_thread::get_id(); }
  void begin_question() {
    asker_ = std::this_thread::get_id();
    ++questions_;
  }
  void end_question() { --questions_; }

 private:
  std::atomic<bool> locked_ = false;
  int questions_ = 0;
  std::thread::id asker_;
};

}  // namespace runnel
