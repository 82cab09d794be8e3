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
  if (is_on_its_thread()) {
    thread_.detach();
  } else if (thread_.joinable()) {
    thread_.join();
  }
  if (!state_->error) return;
  try {
    std::rethrow_exception(state_->error);
  } catch (const std::exception& error) {
    log_error("[checkpoint] an asynchronous save failed: {}", error.what());
  } catch (...) {
    log_error("[checkpoint] an asynchronous save failed");
  }
}

void BackgroundWriter::sync() {
  if (is_on_its_thread()) {
    throw make_error(Code::failed_precondition,
                     "[checkpoint] a callback of an asynchronous save cannot wait for it: save, restore and sync are "
                     "for the thread that saves");
  }
  if (thread_.joinable()) thread_.join();
  state_->thread = std::thread::id();  // the number may be given to another thread now
  if (state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
}

void BackgroundWriter::start(std::function<void()> job, std::function<void(double)> done) {
  sync();
  auto running = std::make_unique<RunningJob>();  // counted before exit() can be called
  state_->busy = true;
  try {
    thread_ = std::thread(
        [state = state_, job = std::move(job), done = std::move(done), running = std::move(running)]() mutable {
          state->thread = std::this_thread::get_id();
          try {
            job();
          } catch (...) {
            state->error = std::current_exception();
          }
          job = nullptr;  // the copies of the values go before anybody is told
          if (done) done(processor_seconds());
          state->busy = false;
        });
  } catch (const std::system_error& error) {
    state_->busy = false;
    throw make_error(Code::resource_exhausted, "[checkpoint] there is no thread for an asynchronous save: {}",
                     error.what());
  }
}

}  // namespace runnel::train
