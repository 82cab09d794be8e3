#pragma once

// Internal: the thread that writes a checkpoint while the program goes on.
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "runnel/base/export.h"

namespace runnel::train {

// One job at a time. What a job throws is thrown by the next call of start() or sync(); nothing is thrown twice. A
// process that ends by returning from main or by exit() waits for jobs first, and names errors that nobody has seen in
// the log. A child of fork() has no part in the jobs of its parent. One thread uses it at a time.
class RUNNEL_API BackgroundWriter {
 public:
  BackgroundWriter() = default;
  ~BackgroundWriter();  // waits; an error that nobody has seen goes to the log
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Waits for the job before. `done` is called by the thread after the job, also one that failed.
  void start(std::function<void()> job, std::function<void(double processor_seconds)> done = {});
  void sync();  // an Error when a job calls it
  bool busy() const;

 private:
  // What the thread touches: it may outlive the writer, which ends in it when a job holds the last owner.
  struct State {
    std::atomic<bool> busy = false;
    std::atomic<std::thread::id> thread = {};  // that runs the job
    std::exception_ptr error;                  // of the job; read after it was joined
  };
  bool is_on_its_thread() const { return state_->thread.load() == std::this_thread::get_id(); }
  void leave_to_parent();  // in a child of fork(): the job that it began
  std::thread thread_;
  int process_ = 0;  // that has the thread
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace runnel::train
