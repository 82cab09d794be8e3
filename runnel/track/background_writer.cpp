#include "runnel/track/background_writer.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/profile_scope.h"
#include "runnel/tensor/profile_step.h"

namespace runnel::train {
namespace {

// The jobs of the process that run, and what went wrong in others that nobody has been told. Never destroyed: they may
// run until after static objects are gone.
struct RunningJobs {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  std::map<std::shared_ptr<const void>, std::string> unseen;  // by the state of the writer
};
RunningJobs& running_jobs() {
  static auto* jobs = new RunningJobs;
  return *jobs;
}

void log_failed_save(const std::string& what) { log_error("[checkpoint] an asynchronous save failed: {}", what); }

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "what was thrown is no std::exception";
  }
}

void note_unseen(const std::shared_ptr<const void>& writer, const std::exception_ptr& error) {
  std::string text = text_of(error);
  const std::lock_guard lock(running_jobs().mutex);
  running_jobs().unseen[writer] = std::move(text);
}
// False if it stands in the log already.
bool take_unseen(const std::shared_ptr<const void>& writer) {
  const std::lock_guard lock(running_jobs().mutex);
  return running_jobs().unseen.erase(writer) != 0;
}

thread_local bool runs_job = false;  // this thread

// A thread that is killed by exit() would lose its checkpoint. A callback that calls exit() itself is not waited for.
void finish_jobs_at_exit() {
  RunningJobs& jobs = running_jobs();
  std::map<std::shared_ptr<const void>, std::string> unseen;
  {
    std::unique_lock lock(jobs.mutex);
    jobs.changed.wait(lock, [&] { return jobs.count == (runs_job ? 1 : 0); });
    unseen.swap(jobs.unseen);
  }
  for (const auto& [writer, what] : unseen) log_failed_save(what);
}

// A child has none of the threads of its parent.
void forget_jobs_in_child() {
  running_jobs().count = 0;
  running_jobs().unseen.clear();
  running_jobs().mutex.unlock();
}

// While it lives, the process does not end by exit().
class RunningJob {
 public:
  RunningJob() {
    static const int registered = std::atexit(finish_jobs_at_exit) +
                                  ::pthread_atfork([] { running_jobs().mutex.lock(); },
                                                   [] { running_jobs().mutex.unlock(); }, forget_jobs_in_child);
    static_cast<void>(registered);
    const std::lock_guard lock(running_jobs().mutex);
    ++running_jobs().count;
  }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;
  ~RunningJob() {
    const std::lock_guard lock(running_jobs().mutex);
    --running_jobs().count;
    running_jobs().changed.notify_all();
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
  leave_to_parent();
  if (is_on_its_thread()) {
    thread_.detach();
  } else if (thread_.joinable()) {
    thread_.join();
  }
  if (state_->error && take_unseen(state_)) log_failed_save(text_of(state_->error));
}

bool BackgroundWriter::busy() const { return state_->busy && process_ == ::getpid(); }

void BackgroundWriter::leave_to_parent() {
  if (process_ == 0 || process_ == ::getpid()) return;
  static auto* const not_here = new std::vector<std::thread>;  // they can be neither joined nor destroyed
  not_here->push_back(std::move(thread_));
  state_ = std::make_shared<State>();
  process_ = 0;
}

void BackgroundWriter::sync() {
  leave_to_parent();
  if (is_on_its_thread()) {
    throw make_error(Code::failed_precondition,
                     "[checkpoint] a callback of an asynchronous save cannot wait for it: save, restore and sync are "
                     "for the thread that saves");
  }
  if (thread_.joinable()) {
    const profile::Span span(profile::Kind::checkpoint, "wait for the checkpoint before", profile::current_step());
    thread_.join();
  }
  state_->thread = std::thread::id();  // the number may be given to another thread now
  if (!state_->error) return;
  take_unseen(state_);
  std::rethrow_exception(std::exchange(state_->error, nullptr));
}

void BackgroundWriter::start(std::function<void()> job, std::function<void(double)> done) {
  sync();
  auto running = std::make_unique<RunningJob>();  // counted before exit() can be called
  state_->busy = true;
  process_ = ::getpid();
  try {
    thread_ = std::thread(
        [state = state_, job = std::move(job), done = std::move(done), running = std::move(running)]() mutable {
          const profile::ThreadName name("checkpoint writer");
          state->thread = std::this_thread::get_id();
          runs_job = true;
          try {
            job();
          } catch (...) {
            state->error = std::current_exception();
            note_unseen(state, state->error);
          }
          job = nullptr;  // the copies of the values go before anybody is told
          if (done) done(processor_seconds());
          state->busy = false;
        });
  } catch (const std::exception& error) {
    state_->busy = false;
    throw make_error(Code::resource_exhausted, "[checkpoint] there is no thread for an asynchronous save: {}",
                     error.what());
  }
}

}  // namespace runnel::train
