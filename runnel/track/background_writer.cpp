#include "runnel/track/background_writer.h"

#include <time.h>

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/log.h"

namespace runnel::train {
namespace {

// The jobs of the process that run. Never destroyed: they may run until after static objects are gone.
struct RunningJobs {
  std::mutex mutex;
  std::condition_variable none;
  int count = 0;
};
RunningJobs& running_jobs() {
  static auto* jobs = new RunningJobs;
  return *jobs;
}

// While it lives, the process does not end by exit().
class RunningJob {
 public:
  RunningJob() {
    // A thread that is killed by exit() would lose its checkpoint.
    static const int registered = std::atexit([] {
      RunningJobs& jobs = running_jobs();
      std::unique_lock lock(jobs.mutex);
      jobs.none.wait(lock, [&] { return jobs.count == 0; });
    });
    static_cast<void>(registered);
    const std::lock_guard lock(running_jobs().mutex);
    ++running_jobs().count;
  }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;
  ~RunningJob() {
    const std::lock_guard lock(running_jobs().mutex);
    if (--running_jobs().count == 0) running_jobs().none.notify_all();
  }
};

// Of this thread.
double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

BackgroundWriter::~BackgroundWriter() {
  join();
  if (!error_) return;
  try {
    std::rethrow_exception(error_);
  } catch (const std::exception& error) {
    log_error("[checkpoint] an asynchronous save failed: {}", error.what());
  } catch (...) {
    log_error("[checkpoint] an asynchronous save failed");
  }
}

void BackgroundWriter::join() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundWriter::sync() {
  join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundWriter::start(std::function<void()> job, std::function<void(double)> done) {
  sync();
  auto running = std::make_unique<RunningJob>();  // counted before exit() can be called
  busy_ = true;
  try {
    thread_ = std::thread([this, job = std::move(job), done = std::move(done), running = std::move(running)]() mutable {
      try {
        job();
      } catch (...) {
        error_ = std::current_exception();
      }
      job = nullptr;  // the copies of the values go before anybody is told
      if (done) done(processor_seconds());
      busy_ = false;
    });
  } catch (const std::system_error& error) {
    busy_ = false;
    throw make_error(Code::resource_exhausted, "[checkpoint] there is no thread for an asynchronous save: {}",
                     error.what());
  }
}

}  // namespace runnel::train
