#include "runnel/base/parallel.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runnel/base/cpu_count.h"
#include "runnel/base/flush_denormals.h"
#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"

namespace runnel {
namespace {

// How long an idle thread watches for work before it sleeps: long enough to bridge the serial code between
// two ops, short enough that an idle process costs nothing. A wake from sleep costs the caller a system call.
constexpr std::chrono::microseconds kWorkerSpin{50};
constexpr std::chrono::microseconds kCallerSpin{50};

// Above 0 while this thread runs ranges, belongs to the pool, or stands in a SerialScope.
thread_local int serial_depth = 0;

// Whether this thread's last job began with the first range. Jobs take turns in their direction, for the next op mostly
// reads or writes what this one did: it starts with what was touched last and is still in the caches, where an op that
// always began at the front would find nothing of a tensor larger than they are.
thread_local bool last_went_up = false;

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Polls ready() for at most `limit`; says whether it came true.
template <class Ready>
bool spin_until(std::chrono::microseconds limit, Ready&& ready) {
  if (ready()) return true;
  if (limit.count() == 0) return false;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      cpu_relax();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

std::atomic<int> thread_count{0};  // 0: not asked for yet
std::atomic<bool> shut{false};     // the process is exiting
constinit std::mutex setup_mutex;  // guards the first setting of thread_count and of the_pool

using Body = FunctionRef<void(int64_t, int64_t)>;
constexpr auto no_body = [](int64_t, int64_t) {};

// The lowest range that threw, and what.
struct Failure {
  int64_t begin = INT64_MAX;
  std::exception_ptr error;

  void note(int64_t at, std::exception_ptr e) {
    if (at < begin) {
      begin = at;
      error = std::move(e);
    }
  }
};

void run_ranges(int64_t n, int64_t grain, int64_t from, int64_t to, bool up, Body body, Failure& failure) {
  for (int64_t i = 0; i < to - from; ++i) {
    const int64_t begin = (up ? from + i : to - 1 - i) * grain;
    try {
      body(begin, n - begin > grain ? begin + grain : n);
    } catch (...) {
      failure.note(begin, std::current_exception());
    }
  }
}

void run_inline(int64_t n, int64_t grain, bool up, Body body) {
  const FlushDenormals as_workers_do;
  const SerialScope nested_calls_run_inline;
  Failure failure;
  run_ranges(n, grain, 0, (n - 1) / grain + 1, up, body, failure);
  if (failure.error) std::rethrow_exception(failure.error);
}

// One job at a time. The ranges nobody has claimed yet are open_ = {first, last}. The caller has the first ones and
// goes up, while the workers claim at the high end and go down; in the next job the caller goes back down and the
// workers come up from its end: over successive ops of one shape a thread meets the data it has in cache, the last
// first.
//
// A claim is one compare-and-swap on open_. Whoever holds a claim has not yet added it to done_, so the
// caller has not returned and the job's plain fields stand still; a thread that comes late finds open_ empty,
// or claims from the next job, and both are right. The object is never freed: a worker may look at open_ at
// any time.
//
// Each line of memory that one thread wrote and another reads costs a tenth of a microsecond or two, and a job may
// last two. So the job stands in one line with open_, the caller's first share is taken out before others see it, and
// done_ is a line that workers alone write.
class Pool {
 public:
  bool try_acquire() { return awaited_.load(std::memory_order_relaxed) == 0 && try_lock(); }
  // For set_num_threads; callers of parallel_for run inline meanwhile. False once the process is exiting.
  bool acquire() {
    awaited_.fetch_add(1, std::memory_order_relaxed);
    bool locked = try_lock();
    while (!locked && !shut.load(std::memory_order_relaxed)) {
      std::this_thread::yield();
      locked = try_lock();
    }
    awaited_.fetch_sub(1, std::memory_order_relaxed);
    return locked;
  }
  void release() { busy_.store(false, std::memory_order_release); }

  // The following need the pool acquired.
  void run(int64_t n, int64_t grain, bool up, Body body);
  void resize(int threads);

 private:
  static constexpr int64_t kMaxRanges = UINT32_MAX;  // of one job: the width of a half of open_

  static uint64_t pack(uint64_t first, uint64_t last) { return first << 32 | last; }
  static uint64_t first_of(uint64_t open) { return open >> 32; }
  static uint64_t last_of(uint64_t open) { return open & UINT32_MAX; }
  static bool has_work(uint64_t open) { return first_of(open) < last_of(open); }

  bool try_lock() { return !busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire); }
  void run_job(int64_t n, int64_t grain, int64_t from, int64_t count, bool up, Body body);
  uint64_t share_of(uint64_t open) const;
  void run_claimed(uint64_t first, uint64_t last, bool up);
  uint64_t work(bool is_caller);
  void work_as_worker();
  void worker_main(int number);
  void sleep_until_work();
  void wait_done(uint64_t total);

  std::atomic<bool> busy_{false};
  std::atomic<int> awaited_{0};  // set_num_threads calls that wait for the pool
  uint64_t done_before_ = 0;     // done_ when the last job ended
  std::mutex failure_mutex_;
  Failure failure_;

  alignas(64) std::atomic<uint64_t> open_{0};
  std::atomic<bool> caller_goes_up_{true};  // a worker may see that of another job, and then claims at the other end
  // The job; written by its caller before open_, read by claim holders.
  int64_t n_ = 0;
  int64_t grain_ = 1;
  int64_t from_ = 0;
  Body body_ = no_body;
  alignas(64) std::atomic<uint64_t> done_{0};  // ranges that workers have run, of all jobs
  std::atomic<uint32_t> done_signal_{0};       // futex word of a caller that waits asleep
  std::atomic<bool> caller_asleep_{false};
  alignas(64) std::atomic<uint32_t> wake_signal_{0};  // futex word of sleeping workers
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};

  int threads_ = 1;       // workers_ plus the caller
  bool crowded_ = false;  // more threads than CPUs: spinning would only steal time from the one that has the work
  std::vector<std::thread> workers_;
};

// Shares shrink towards the end: few claims, and still an even finish.
uint64_t Pool::share_of(uint64_t open) const {
  return std::max<uint64_t>(1, (last_of(open) - first_of(open)) / static_cast<uint64_t>(threads_));
}

void Pool::run_claimed(uint64_t first, uint64_t last, bool up) {
  Failure failure;
  run_ranges(n_, grain_, from_ + static_cast<int64_t>(first), from_ + static_cast<int64_t>(last), up, body_, failure);
  if (failure.error) {
    const std::lock_guard lock(failure_mutex_);
    failure_.note(failure.begin, std::move(failure.error));
  }
}

// Claims and runs ranges until none is open; returns how many. They are not yet in done_.
uint64_t Pool::work(bool is_caller) {
  uint64_t mine = 0;
  uint64_t open = open_.load(std::memory_order_acquire);
  while (has_work(open)) {
    const uint64_t first = first_of(open), last = last_of(open), share = share_of(open);
    const bool up = caller_goes_up_.load(std::memory_order_relaxed) == is_caller;
    const uint64_t rest = up ? pack(first + share, last) : pack(first, last - share);
    if (!open_.compare_exchange_weak(open, rest, std::memory_order_acquire, std::memory_order_acquire)) continue;
    if (up) {
      run_claimed(first, first + share, up);
    } else {
      run_claimed(last - share, last, up);
    }
    mine += share;
    open = open_.load(std::memory_order_acquire);
  }
  return mine;
}

void Pool::work_as_worker() {
  const uint64_t mine = work(false);
  if (mine == 0) return;
  // Sequentially consistent with wait_done: either we see caller_asleep_ or the caller sees our addition.
  done_.fetch_add(mine, std::memory_order_seq_cst);
  if (caller_asleep_.load(std::memory_order_seq_cst)) {
    done_signal_.fetch_add(1, std::memory_order_release);
    futex_wake(done_signal_, INT_MAX);
  }
}

void Pool::worker_main(int number) {
  const profile::ThreadName name("pool", number);
  const FlushDenormals flush;
  serial_depth = 1;
  while (true) {
    const bool awake = spin_until(crowded_ ? std::chrono::microseconds(0) : kWorkerSpin, [this] {
      return has_work(open_.load(std::memory_order_acquire)) || stop_.load(std::memory_order_relaxed);
    });
    if (!awake) sleep_until_work();
    if (stop_.load(std::memory_order_acquire)) return;
    work_as_worker();
  }
}

void Pool::sleep_until_work() {
  // Sequentially consistent with run_job and resize: either they see us in sleepers_ and change wake_signal_,
  // or we see their work here.
  const uint32_t signal = wake_signal_.load(std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (!has_work(open_.load(std::memory_order_seq_cst)) && !stop_.load(std::memory_order_seq_cst)) {
    futex_wait(wake_signal_, signal);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

// Until workers have run `total` ranges in all.
void Pool::wait_done(uint64_t total) {
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == total; };
  if (spin_until(crowded_ ? std::chrono::microseconds(0) : kCallerSpin, all_done)) return;
  while (true) {
    const uint32_t signal = done_signal_.load(std::memory_order_seq_cst);
    caller_asleep_.store(true, std::memory_order_seq_cst);
    if (done_.load(std::memory_order_seq_cst) == total) break;
    futex_wait(done_signal_, signal);
  }
  caller_asleep_.store(false, std::memory_order_relaxed);
}

void Pool::run_job(int64_t n, int64_t grain, int64_t from, int64_t count, bool up, Body body) {
  caller_goes_up_.store(up, std::memory_order_relaxed);
  n_ = n;
  grain_ = grain;
  from_ = from;
  body_ = body;
  const uint64_t all = pack(0, static_cast<uint64_t>(count)), share = share_of(all);
  open_.store(pack(share, static_cast<uint64_t>(count)), std::memory_order_seq_cst);
  if (const int sleepers = sleepers_.load(std::memory_order_seq_cst); sleepers > 0) {
    wake_signal_.fetch_add(1, std::memory_order_release);
    futex_wake(wake_signal_, static_cast<int>(std::min<int64_t>(sleepers, count - 1)));
  }
  run_claimed(0, share, up);
  done_before_ += static_cast<uint64_t>(count) - share - work(true);
  wait_done(done_before_);
}

void Pool::run(int64_t n, int64_t grain, bool up, Body body) {
  // Read while the pool is ours: set_num_threads may have come between the caller's look and now.
  resize(thread_count.load(std::memory_order_relaxed));
  const FlushDenormals as_workers_do;
  const SerialScope nested_calls_run_inline;
  const int64_t total = (n - 1) / grain + 1;
  for (int64_t from = 0; from < total; from += kMaxRanges) {
    run_job(n, grain, from, std::min(kMaxRanges, total - from), up, body);
  }
  if (failure_.error) [[unlikely]] {
    Failure failure;
    std::swap(failure, failure_);
    release();
    std::rethrow_exception(failure.error);
  }
  release();
}

void Pool::resize(int threads) {
  if (threads == threads_) return;
  stop_.store(true, std::memory_order_seq_cst);
  wake_signal_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(wake_signal_, INT_MAX);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  stop_.store(false, std::memory_order_relaxed);
  threads_ = threads;
  crowded_ = threads > 1 && threads > usable_cpus();
  // Signals stay with the threads of the program; its handlers never run on a worker.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (int i = 1; i < threads; ++i) {
      workers_.emplace_back([this, i] { worker_main(i - 1); });
      pthread_setname_np(workers_.back().native_handle(), "runnel");
    }
  } catch (const std::exception&) {
    // The system gives no more threads: fewer workers do the same work.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::atomic<Pool*> the_pool{nullptr};
Pool* parents_pool = nullptr;  // of the process we were forked from; kept so that it is not a leak

// Ends the workers at exit or when the library is unloaded. The pool stays acquired for ever, so later calls
// (static destructors, detached threads) run inline. If a job is running now, its ranges cannot be waited
// for: one of them may be what called exit.
void shut_down() {
  shut.store(true, std::memory_order_relaxed);
  Pool* pool = the_pool.load(std::memory_order_acquire);
  if (pool != nullptr && pool->try_acquire()) pool->resize(1);
}

// In a forked child the workers do not exist, and the pool may have been in any state: it starts over with a
// new one.
void after_fork_in_child() {
  if (Pool* pool = the_pool.exchange(nullptr, std::memory_order_relaxed)) parents_pool = pool;
  setup_mutex.unlock();
}

Pool& pool() {
  if (Pool* p = the_pool.load(std::memory_order_acquire)) return *p;
  const std::lock_guard lock(setup_mutex);
  Pool* p = the_pool.load(std::memory_order_relaxed);
  if (p == nullptr) {
    static const bool hooked = [] {
      pthread_atfork([] { setup_mutex.lock(); }, [] { setup_mutex.unlock(); }, after_fork_in_child);
      std::atexit(shut_down);
      return true;
    }();
    static_cast<void>(hooked);
    p = new Pool;
    the_pool.store(p, std::memory_order_release);
  }
  return *p;
}

}  // namespace

SerialScope::SerialScope() noexcept { ++serial_depth; }
SerialScope::~SerialScope() { --serial_depth; }

int num_threads() {
  if (const int n = thread_count.load(std::memory_order_relaxed); n != 0) return n;
  const std::lock_guard lock(setup_mutex);
  if (thread_count.load(std::memory_order_relaxed) == 0) {
    thread_count.store(thread_count_from(std::getenv("RUNNEL_NUM_THREADS")), std::memory_order_relaxed);
  }
  return thread_count.load(std::memory_order_relaxed);
}

void set_num_threads(int n) {
  if (n < 1 || n > kMaxThreads) {
    throw invalid_argument("set_num_threads: the count must be from 1 to {}, not {}", kMaxThreads, n);
  }
  if (serial_depth > 0) {
    throw make_error(Code::failed_precondition, "set_num_threads({}) inside a parallel_for or SerialScope", n);
  }
  Pool& p = pool();
  if (!p.acquire()) return;
  thread_count.store(n, std::memory_order_relaxed);
  p.resize(n);
  p.release();
}

void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (grain < 1) throw invalid_argument("parallel_for: the grain must be at least 1, not {}", grain);
  if (n <= grain) {
    if (n > 0) body(0, n);
    return;
  }
  if (serial_depth > 0) return run_inline(n, grain, true, body);
  const bool up = last_went_up = !last_went_up;
  if (num_threads() == 1) return run_inline(n, grain, up, body);
  Pool& p = pool();
  if (!p.try_acquire()) return run_inline(n, grain, up, body);
  p.run(n, grain, up, body);
}

}  // namespace runnel
