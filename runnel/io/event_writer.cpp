#include "runnel/io/event_writer.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/profile_scope.h"
#include "runnel/io/event.h"
#include "runnel/io/record_writer.h"

namespace runnel::io {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kScheduledFlush = std::chrono::milliseconds(900);
// After it wrote, the thread rests so long, for waking it is what an event costs its caller most.
constexpr auto kRest = std::chrono::milliseconds(2);
// A disk that is slower than the program: with so many bytes waiting, calls wait.
constexpr size_t kMostWaiting = size_t{256} << 20;
constexpr Clock::time_point kNever = Clock::time_point::max();

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string event_file_path(const std::string& logdir, const std::string& suffix) {
  static std::atomic<int64_t> number{0};  // two writers of one process must not share a file
  return join_path(
      logdir, fmt::format("events.out.tfevents.{:010}.{}.{}.{}{}{}", static_cast<int64_t>(::time(nullptr)), host_name(),
                          ::getpid(), number++, suffix.empty() || suffix.starts_with('.') ? "" : ".", suffix));
}

std::unique_ptr<FileLock> folder_lock(const std::string& folder, Env& env) {
  try {
    return env.lock(folder);
  } catch (const Error&) {
    return nullptr;  // a file system without locks: the names alone keep writers apart
  }
}

// Another number in each process that fork made.
int process_generation() {
  static std::atomic<int> forks{0};
  static const int hooked = ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(hooked);
  return forks.load(std::memory_order_relaxed);
}

// Events one after the other, and where each ends.
struct EventQueue {
  std::string bytes;
  std::vector<size_t> ends;
  bool empty() const { return ends.empty(); }
  void clear() {
    constexpr size_t kept = size_t{4} << 20;  // one large image must not hold its memory for ever
    if (bytes.capacity() > kept) {
      *this = {};
    } else {
      bytes.clear();
      ends.clear();
    }
  }
};

}  // namespace

struct EventWriter::State {
  const EventWriterOptions options;
  std::string path;                    // fixed once it is constructed
  std::optional<TFRecordWriter> file;  // of the thread
  const int generation = process_generation();

  std::mutex mutex;
  std::condition_variable wake;   // the thread: there is something to do
  std::condition_variable wrote;  // callers: the thread has written
  EventQueue queue;
  uint64_t given = 0, written = 0;  // events
  uint64_t wanted = 0;              // so many must be written now
  // The latest moment for what waits. kNever: nothing waits, and the thread sleeps until it is woken.
  Clock::time_point write_at;
  bool closing = false, closed = false;
  bool warned_full = false;
  std::optional<Error> failure;
  std::thread thread;

  State(const std::string& logdir, const EventWriterOptions& o, Env& env)
      : options(o), path(event_file_path(logdir, o.filename_suffix)), write_at(kNever) {
    try {
      begin_file(logdir, env);
    } catch (const Error& e) {
      if (!o.keep_going) throw;
      log_warning("[EventWriter] {}: {}; nothing is recorded", path, e.what());
      failure = e;
      failed_file_ = true;
    }
    thread = std::thread([this] { run(); });
  }

  // The name may be taken: containers share folders, while host names and process numbers are the same in each.
  void begin_file(const std::string& logdir, Env& env) {
    env.create_dirs(logdir);
    const std::unique_ptr<FileLock> alone = folder_lock(logdir, env);
    while (env.exists(path)) path = event_file_path(logdir, options.filename_suffix);
    file.emplace(path, TFRecordOptions{}, env, SourceSite());
    std::string first;
    append_version_event(first, static_cast<double>(::time(nullptr)));
    file->write(first, SourceSite());
    file->flush(SourceSite());
  }

  // Is this a child made by fork? It has neither the thread nor a right to the file, and its copy of the lock may be
  // held for ever: nothing else here may be touched.
  bool is_parents() const { return generation != process_generation(); }
  void require_own() const {
    if (!is_parents()) return;
    throw make_error(Code::failed_precondition,
                     "[EventWriter] {} belongs to the process that this one was forked from: make a new writer", path);
  }
  // Keeps it, as its parts cannot be destroyed without the thread; reachable, so that it is no leak.
  void leave_to_parent() {
    static std::atomic<State*> all{nullptr};
    next_of_parents_ = all.exchange(this);
  }

  Clock::duration flush_interval() const {
    constexpr int64_t most = int64_t{1000} * 3600 * 24 * 365;  // the clock's numbers end somewhere
    return std::chrono::milliseconds(std::clamp<int64_t>(options.flush_millis, 0, most));
  }

  bool too_many() const { return static_cast<int64_t>(queue.ends.size()) > options.max_queue; }
  bool urgent() const { return closing || wanted > written || queue.bytes.size() > kMostWaiting / 2; }
  bool due() const { return urgent() || too_many(); }

  // `append` puts one event behind the others. False where it is dropped.
  template <class Append>
  bool give(const SourceSite& where, const Append& append) {
    return at_caller(where, [&] {
      require_own();
      std::unique_lock lock(mutex);
      if (!takes_events()) return false;
      if (queue.bytes.size() > kMostWaiting) [[unlikely]] {
        wait_for_room(lock);
        if (!takes_events()) return false;  // closed or failed meanwhile
      }
      const bool was_due = due(), first = write_at == kNever;
      append(queue.bytes);
      queue.ends.push_back(queue.bytes.size());
      ++given;
      if (first) write_at = Clock::now() + flush_interval();
      if (first || (!was_due && due())) wake.notify_one();
      return true;
    });
  }

  // An Error once it is closed; false where events are dropped.
  bool takes_events() const {
    check_open();
    if (failure) fail();
    return !failure;
  }

  void check_open() const {
    if (closed || closing) {
      throw make_error(Code::failed_precondition, "[EventWriter] {} is closed: make a new writer", path);
    }
  }
  void fail() const {
    if (!options.keep_going) throw Error(*failure);
  }

  void wait_for_room(std::unique_lock<std::mutex>& lock) {
    if (!warned_full) {
      warned_full = true;
      log_warning("[EventWriter] {}: the disk is slower than the program, which now waits for it", path);
    }
    wake.notify_one();
    wrote.wait(lock, [&] { return queue.bytes.size() <= kMostWaiting || failure; });
  }

  void schedule() {
    if (is_parents()) return;
    const std::lock_guard lock(mutex);
    if (queue.empty() || closed) return;
    const Clock::time_point soon = Clock::now() + kScheduledFlush;
    if (write_at <= soon) return;
    write_at = soon;
    wake.notify_one();
  }

  void flush() {
    require_own();
    std::unique_lock lock(mutex);
    check_open();
    if (given > written) {
      const uint64_t mine = given;
      wanted = std::max(wanted, mine);
      wake.notify_one();
      wrote.wait(lock, [&] { return written >= mine || failure; });
    }
    if (failure) fail();
  }

  void close() {
    if (is_parents()) return;
    {
      std::unique_lock lock(mutex);
      if (closing) return wrote.wait(lock, [&] { return closed; });  // another thread is at it
      closing = true;
      wake.notify_one();
    }
    thread.join();
    const std::lock_guard lock(mutex);
    closed = true;
    wrote.notify_all();
    if (failure) fail();
  }

  // The thread's.
  void run() {
    const profile::ThreadName name("summary writer");
    EventQueue taken;
    std::unique_lock lock(mutex);
    while (true) {
      wait_for_work(lock);
      const bool last = closing;
      std::swap(queue, taken);
      write_at = Clock::now() + flush_interval();  // now: requests made while it writes may lower it
      lock.unlock();
      std::optional<Error> error = write_out(taken, last);
      lock.lock();
      written += taken.ends.size();
      taken.clear();
      if (error && !failure) {
        if (options.keep_going) log_warning("{}; what follows is not recorded", error->what());
        failure = std::move(error);
      }
      wrote.notify_all();
      if (last) return;
      if (!urgent()) wake.wait_for(lock, kRest, [&] { return urgent(); });
    }
  }

  void wait_for_work(std::unique_lock<std::mutex>& lock) {
    while (!due()) {
      if (write_at == kNever) {
        wake.wait(lock);
      } else if (Clock::now() < write_at) {
        wake.wait_until(lock, Clock::time_point(write_at));  // a copy: others change it meanwhile
      } else if (queue.empty()) {
        write_at = kNever;
      } else {
        return;
      }
    }
  }

  std::optional<Error> write_out(const EventQueue& taken, bool last) {
    try {
      if (failed_file_) return std::nullopt;  // told already
      profile::Span span(profile::Kind::summary, "write events");
      if (span) {
        span.set_detail(path);
        span.add_bytes(static_cast<int64_t>(taken.bytes.size()));
      }
      failed_file_ = true;
      size_t at = 0;
      for (const size_t end : taken.ends) {
        file->write(std::string_view(taken.bytes).substr(at, end - at), SourceSite());
        at = end;
      }
      if (!taken.empty()) file->flush(SourceSite());
      if (last) file->close(SourceSite());
      failed_file_ = false;
      return std::nullopt;
    } catch (const Error& e) {
      return make_error(e.code(), "[EventWriter] {}: events are lost: {}", path, e.what());
    } catch (const std::exception& e) {  // memory
      return make_error(Code::resource_exhausted, "[EventWriter] {}: events are lost: {}", path, e.what());
    }
  }

 private:
  bool failed_file_ = false;  // of the thread
  State* next_of_parents_ = nullptr;
};

EventWriter::EventWriter(const std::string& logdir, const EventWriterOptions& options, Env& env, SourceSite where) {
  at_caller(where, [&] {
    if (options.max_queue < 0) {
      throw invalid_argument("[EventWriter] max_queue must not be negative, got {}", options.max_queue);
    }
    if (options.flush_millis < 0) {
      throw invalid_argument("[EventWriter] flush_millis must not be negative, got {}", options.flush_millis);
    }
    state_ = std::make_unique<State>(logdir, options, env);
  });
}

EventWriter::~EventWriter() {
  if (state_->is_parents()) {
    state_.release()->leave_to_parent();
    return;
  }
  try {
    state_->close();
  } catch (const Error& e) {
    log_warning("{}", e.what());
  }
}

bool EventWriter::write(std::string_view event, SourceSite where) {
  return state_->give(where, [&](std::string& out) { out += event; });
}

bool EventWriter::write_tensor(int64_t step, std::string_view tag, std::string_view tensor, std::string_view metadata,
                               SourceSite where) {
  return state_->give(where,
                      [&](std::string& out) { append_tensor_event(out, event_time(), step, tag, tensor, metadata); });
}

void EventWriter::schedule_flush() { state_->schedule(); }
void EventWriter::flush(SourceSite where) {
  at_caller(where, [&] { state_->flush(); });
}
void EventWriter::close(SourceSite where) {
  at_caller(where, [&] { state_->close(); });
}
bool EventWriter::is_open() const {
  if (state_->is_parents()) return false;
  const std::lock_guard lock(state_->mutex);
  return !state_->closed && !state_->closing;
}
bool EventWriter::has_failed() const {
  if (state_->is_parents()) return false;
  const std::lock_guard lock(state_->mutex);
  return state_->failure.has_value();
}
void EventWriter::require_open(SourceSite where) const {
  at_caller(where, [&] {
    state_->require_own();
    const std::lock_guard lock(state_->mutex);
    state_->check_open();
  });
}
const std::string& EventWriter::path() const { return state_->path; }

}  // namespace runnel::io
