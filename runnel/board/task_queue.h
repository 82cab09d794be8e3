#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "runnel/base/export.h"

namespace runnel::board {

// Runs tasks that may wait for a long time, connections of browsers, each on a thread of its own. A thread whose task
// is done takes the next one, or ends when none comes for a while. Past `most` threads, or where
// the system gives no more, tasks wait their turn.
class RUNNEL_API TaskThreads {
 public:
  explicit TaskThreads(size_t most);
  ~TaskThreads();
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  void add(std::function<void()> task);
  void finish();  // returns once all tasks have ended; none may be added after it
  size_t threads() const;

 private:
  void work();

  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable news_, ended_;
  std::deque<std::function<void()>> waiting_;
  size_t threads_ = 0, idle_ = 0;
  bool finishing_ = false;
};

}  // namespace runnel::board
