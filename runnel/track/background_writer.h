#pragma once

// Internal: the thread that writes a checkpoint while the program goes on.
#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "runnel/base/export.h"

namespace runnel::train {

// One job at a time. What a job throws is thrown by the next call of start() or sync(); nothing is thrown twice. A
// process that ends by returning from main or by exit() waits for jobs first. One thread uses it at a time.
class RUNNEL_API BackgroundWriter {
 public:
  BackgroundWriter() = default;
  ~BackgroundWriter();  // waits; an error that nobody has seen goes to the log
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Waits for the job before. `done` is called by the thread after the job, also one that failed.
  void start(std::function<void()> job, std::function<void(double processor_seconds)> done = {});
  void sync();
  bool busy() const { return busy_; }

 private:
  void join();
  std::thread thread_;
  std::atomic<bool> busy_ = false;
  std::exception_ptr error_;  // of the job; read after it was joined
};

}  // namespace runnel::train
