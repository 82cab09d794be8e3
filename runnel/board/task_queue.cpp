#include "runnel/board/task_queue.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "runnel/base/log.h"

namespace runnel::board {

TaskThreads::TaskThreads(size_t most) : most_(most) {}
TaskThreads::~TaskThreads() { finish(); }

void TaskThreads::add(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(task));
  if (idle_ < waiting_.size() && threads_ < most_) {
    // Detached, but finish() waits for each: a thread touches nothing of this after it has said that it ended.
    try {
      std::thread([this] { work(); }).detach();
      ++threads_;
      return;
    } catch (const std::system_error& e) {
      log_warning("[board] a connection waits, for no thread can be started: {}", e.what());
    }
  }
  news_.notify_one();
}

void TaskThreads::work() {
  constexpr std::chrono::seconds patience{5};
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    const bool found = news_.wait_for(lock, patience, [&] { return finishing_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) {
      if (!finishing_ && found) continue;
      break;
    }
    const std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
  --threads_;
  ended_.notify_all();
}

void TaskThreads::finish() {
  std::unique_lock lock(mutex_);
  finishing_ = true;
  news_.notify_all();
  ended_.wait(lock, [&] { return threads_ == 0; });
  // Tasks for which no thread could be started.
  while (!waiting_.empty()) {
    const std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

size_t TaskThreads::threads() const {
  const std::lock_guard lock(mutex_);
  return threads_;
}

}  // namespace runnel::board
