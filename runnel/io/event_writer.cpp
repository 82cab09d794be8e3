#include "runnel/io/event_writer.h"

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

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/caller_line.h"
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

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string event_file_path(const std::string& logdir, const EventWriterOptions& o, Env& env) {
  static std::atomic<int64_t> number{0};  // two writers of one process must not share a file
  const std::string name = join_path(
      logdir, fmt::format("events.out.tfevents.{:010}.{}", static_cast<int64_t>(::time(nullptr)), host_name()));
  if (o.short_name && !env.exists(name + o.filename_suffix)) return name + o.filename_suffix;
  const char* dot = o.filename_suffix.starts_with('.') ? "" : ".";
  return fmt::format("{}.{}.{}{}{}", name, ::getpid(), number++, dot, o.filename_suffix);
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
  const std::string path;
  std::optional<TFRecordWriter> file;  // of the thread

  std::mutex mutex;
  std::condition_variable wake;   // the thread: there is something to do
  std::condition_variable wrote;  // callers: the thread has written
  EventQueue queue;
  uint64_t given = 0, written = 0;  // events
  uint64_t wanted = 0;              // so many must be written now
  Clock::time_point write_at;       // the latest moment for what waits
  bool closing = false, closed = false;
  bool warned_full = false;
  std::optional<Error> failure;
  std::thread thread;

  State(const std::string& logdir, const EventWriterOptions& o, Env& env)
      : options(o), path(event_file_path(logdir, o, env)), write_at(Clock::now() + flush_interval()) {
    file.emplace(path, TFRecordOptions{}, env, SourceSite());
    std::string first;
    append_version_event(first, static_cast<double>(::time(nullptr)));
    file->write(first, SourceSite());
    file->flush(SourceSite());
    thread = std::thread([this] { run(); });
  }

  Clock::duration flush_interval() const {
    constexpr int64_t most = int64_t{1000} * 3600 * 24 * 365;  // the clock's numbers end somewhere
    return std::chrono::milliseconds(std::clamp<int64_t>(options.flush_millis, 0, most));
  }

  bool too_many() const { return static_cast<int64_t>(queue.ends.size()) > options.max_queue; }
  bool urgent() const { return closing || wanted > written || queue.bytes.size() > kMostWaiting / 2; }

  // With the lock held: `append` puts one event behind the others.
  template <class Append>
  void give(const SourceSite& where, const Append& append) {
    called_at(where, [&] {
      std::unique_lock lock(mutex);
      check_open();
      if (failure) return fail();
      if (queue.bytes.size() > kMostWaiting) [[unlikely]]
        wait_for_room(lock);
      append(queue.bytes);
      queue.ends.push_back(queue.bytes.size());
      ++given;
      if (static_cast<int64_t>(queue.ends.size()) == options.max_queue + 1) wake.notify_one();
    });
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
    const std::lock_guard lock(mutex);
    if (queue.empty() || closed) return;
    const Clock::time_point soon = Clock::now() + kScheduledFlush;
    if (write_at <= soon) return;
    write_at = soon;
    wake.notify_one();
  }

  void flush() {
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
    {
      std::unique_lock lock(mutex);
      if (closed || closing) return;
      closing = true;
      wake.notify_one();
    }
    thread.join();
    const std::lock_guard lock(mutex);
    closed = true;
    if (failure) fail();
  }

  // The thread's.
  void run() {
    EventQueue taken;
    std::unique_lock lock(mutex);
    while (true) {
      while (!urgent() && !too_many() && Clock::now() < write_at) wake.wait_until(lock, write_at);
      const bool last = closing;
      std::swap(queue, taken);
      lock.unlock();
      std::optional<Error> error = write_out(taken, last);
      lock.lock();
      written += taken.ends.size();
      taken.clear();
      write_at = Clock::now() + flush_interval();
      if (error && !failure) {
        if (options.keep_going) log_warning("{}; what follows is not recorded", error->what());
        failure = std::move(error);
      }
      wrote.notify_all();
      if (last) return;
      if (!urgent()) wake.wait_for(lock, kRest, [&] { return urgent(); });
    }
  }

  std::optional<Error> write_out(const EventQueue& taken, bool last) {
    try {
      if (failed_file_) return std::nullopt;  // told already
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
};

EventWriter::EventWriter(const std::string& logdir, const EventWriterOptions& options, Env& env, SourceSite where) {
  called_at(where, [&] {
    if (options.max_queue < 0) {
      throw invalid_argument("[EventWriter] max_queue must not be negative, got {}", options.max_queue);
    }
    if (options.flush_millis < 0) {
      throw invalid_argument("[EventWriter] flush_millis must not be negative, got {}", options.flush_millis);
    }
    env.create_dirs(logdir);
    state_ = std::make_unique<State>(logdir, options, env);
  });
}

EventWriter::~EventWriter() {
  try {
    state_->close();
  } catch (const Error& e) {
    log_warning("{}", e.what());
  }
}

void EventWriter::write(std::string_view event, SourceSite where) {
  state_->give(where, [&](std::string& out) { out += event; });
}

void EventWriter::write_tensor(int64_t step, std::string_view tag, std::string_view tensor, std::string_view metadata,
                               SourceSite where) {
  state_->give(where, [&](std::string& out) { append_tensor_event(out, event_time(), step, tag, tensor, metadata); });
}

void EventWriter::schedule_flush() { state_->schedule(); }
void EventWriter::flush(SourceSite where) {
  called_at(where, [&] { state_->flush(); });
}
void EventWriter::close(SourceSite where) {
  called_at(where, [&] { state_->close(); });
}
bool EventWriter::is_open() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->closed && !state_->closing;
}
void EventWriter::require_open(SourceSite where) const {
  called_at(where, [&] {
    const std::lock_guard lock(state_->mutex);
    state_->check_open();
  });
}
const std::string& EventWriter::path() const { return state_->path; }

}  // namespace runnel::io
