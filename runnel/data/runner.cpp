// The threads that work ahead.
#include "runnel/data/runner.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "runnel/base/flush_denormals.h"
#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/data/stage_event.h"
#include "runnel/tensor/thread_context.h"

namespace runnel::data {
namespace {

constexpr int64_t kBlockNs = 20'000;  // the work worth a hand-over between threads
constexpr double kBlockBytes = 1 << 18;
constexpr std::chrono::microseconds kParked{500};  // between two looks of a thread whose place the consumer took
constexpr int64_t kAwayNs = 100'000;               // the consumer has work of its own
constexpr int64_t kSnapshotEvery = 16;             // elements between two saved states of the input

struct ThreadTimes {
  int64_t cpu_ns;
  int64_t blocked;  // how often it gave up the CPU by itself
};
ThreadTimes thread_times() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto ns = [](const timeval& t) { return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_usec * 1000; };
  return {ns(usage.ru_utime) + ns(usage.ru_stime), usage.ru_nvcsw};
}

thread_local const Pipeline* worker_of = nullptr;

double smoothed(double mean, double value) { return mean == 0 ? value : 0.8 * mean + 0.2 * value; }

}  // namespace

const Pipeline* working_for() { return worker_of; }

Runner::Runner(const Context& ctx, std::unique_ptr<RunnerJob> job, int parallel, int depth, bool ordered,
               StageStats& stats)
    : pipeline_(ctx.pipeline),
      job_(std::move(job)),
      auto_parallel_(parallel == AUTOTUNE),
      auto_depth_(depth <= 0),
      ordered_(ordered),
      stage_(stats),
      limit_(std::clamp(parallel == AUTOTUNE ? ctx.pipeline->threads : parallel, 1, kMaxThreads)),
      depth_(depth <= 0 ? int64_t{2} * limit_ : depth),
      alone_(parallel == 1 && depth == AUTOTUNE && dynamic_cast<PullJob*>(job_.get()) != nullptr) {
  helps_ = limit_ > 1 && job_->state_is_small();
  stage_.tuned = auto_parallel_ || depth == AUTOTUNE;
  stage_.parallelism = alone_ ? 0 : limit_;
  stage_.depth = static_cast<int>(depth_);
}

Runner::~Runner() { stop(); }

void Runner::spawn() {
  // Signals stay with the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (static_cast<int>(threads_.size()) < limit_) {
      threads_.emplace_back([this, number = static_cast<int>(threads_.size())] { work(number); });
      pthread_setname_np(threads_.back().native_handle(), "runnel-data");
    }
  } catch (const std::exception&) {
    // The system gives no more threads: fewer do the same work.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (threads_.empty()) throw Error(Code::resource_exhausted, "[data] no thread can be started");
}

void Runner::begin() {
  if (started_) return;
  try {
    start();
  } catch (const std::exception&) {
    if (!alone_) throw;
    overlap_ns_ = 0;  // no thread is to be had: the consumer goes on by itself, and asks again later
  }
}

void Runner::start() {
  const bool fresh = base_state_.empty();
  if (fresh) {
    StateWriter w;
    job_->save(w);
    base_state_ = w.take();
  }
  const Lock lock(mutex_);
  try {
    spawn();
  } catch (...) {
    if (fresh) base_state_.clear();  // the consumer may go on alone, past this state
    throw;
  }
  started_ = true;
  alone_ = false;
  stage_.parallelism = limit_;
}

void Runner::stop() {
  {
    const Lock lock(mutex_);
    stop_ = true;
    work_.notify_all();
  }
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  stop_ = false;
  for (const auto& b : blocks_) pipeline_->budget.give(b->bytes);
  blocks_.clear();
  current_.reset();
  at_ = piece_ = 0;
  outstanding_ = 0;
  ended_ = false;
  waiting_ = urgent_ = parked_ = consumer_inside_ = false;
  started_ = false;
}

int64_t Runner::block_size() const {
  if (element_ns_ == 0) return 1;
  // Large elements are worth a hand-over each.
  const auto n = static_cast<int64_t>(std::min(static_cast<double>(kBlockNs) / std::max(element_ns_, 1.0),
                                               kBlockBytes / std::max(element_bytes_, 1.0)));
  return std::clamp<int64_t>(n, 1, auto_depth_ ? 256 : std::max<int64_t>(1, depth_ / (2 * limit_)));
}

bool Runner::has_room() const {
  if (outstanding_ == 0) return true;
  return outstanding_ < depth_ && pipeline_->budget.fits(expected_bytes(block_size()));
}

// What so many elements will take, by those that came before.
int64_t Runner::expected_bytes(int64_t elements) const {
  return static_cast<int64_t>(element_bytes_ * static_cast<double>(elements));
}

void Runner::work(int number) {
  worker_of = pipeline_.get();
  const std::string role = "pipeline " + stage_.name;
  const profile::ThreadName name(role.c_str(), number);
  const FlushDenormals flush;
  const ContextScope<&ThreadContext::worker> working(true);
  const SerialScope parallel_over_elements;
  Lock lock(mutex_);
  // The consumer may be at work in the place of any of the threads.
  const auto mine = [&] { return number < limit_ - (parked_ ? 1 : 0) && active_ < limit_; };
  while (true) {
    while (!stop_ && !ended_ && (!mine() || !has_room())) {
      if (outstanding_ >= depth_) was_full_ = true;
      if (waiting_) ready_.notify_one();
      ++idle_;
      if (parked_ && number == limit_ - 1) {
        work_.wait_for(lock, kParked);
        if (!consumer_inside_ && now_ns() - consumer_left_ > kAwayNs) parked_ = false;
      } else if (active_ >= limit_) {
        work_.wait_for(lock, kParked);
      } else if (number < limit_ && outstanding_ < depth_) {
        work_.wait_for(lock, std::chrono::milliseconds(2));  // another stage may give bytes back
      } else {
        work_.wait(lock);
      }
      --idle_;
    }
    if (stop_ || ended_) {
      if (waiting_) ready_.notify_one();
      return;
    }
    if (work_block(lock)) {
      lock.unlock();  // whoever is woken wants it
      ready_.notify_one();
      lock.lock();
    }
  }
}

// Claims a block and computes it; says whether the consumer is to be woken. The lock is held before and after.
bool Runner::work_block(Lock& lock) {
  const int64_t want = block_size();
  outstanding_ += want;
  ++active_;
  auto block = std::make_shared<Block>();
  block->bytes = expected_bytes(want);
  pipeline_->budget.take(block->bytes);
  const bool measured = ++measured_blocks_ % 8 == 1;  // asking the system costs a good part of a microsecond
  lock.unlock();
  int64_t start = 0;
  ThreadTimes before{};
  {
    const std::lock_guard claim(claim_mutex_);
    start = now_ns();
    if (measured) before = thread_times();
    lock.lock();
    const bool over = stop_ || ended_;
    lock.unlock();
    bool more = false;
    if (!over) {
      try {
        if (job_->state_is_small() || claimed_ >= snapshot_at_) {
          StateWriter w;
          job_->save(w);
          block->snapshot = w.take();
          snapshot_at_ = claimed_ + kSnapshotEvery;
        }
        more = job_->claim(*block, want);
      } catch (...) {
        block->results.clear();
        block->results.emplace_back().error = std::current_exception();
        more = true;
      }
    }
    block->first = claimed_;
    for (size_t i = 0; i < block->results.size(); ++i) {
      const int64_t at = claimed_ + static_cast<int64_t>(i);
      block->results[i].dropped = std::binary_search(passed_over_.begin(), passed_over_.end(), at);
    }
    claimed_ += static_cast<int64_t>(block->results.size());
    lock.lock();
    outstanding_ += static_cast<int64_t>(block->results.size()) - want;
    if (more) blocks_.push_back(block);
    if (!more && !over) ended_ = true;
    if (!more) {
      --active_;
      pipeline_->budget.give(block->bytes);
      work_.notify_all();
      return true;
    }
    lock.unlock();
  }
  run_block(*block);
  const int64_t wall = now_ns() - start;
  std::optional<double> share;
  if (measured) {
    const ThreadTimes after = thread_times();
    const bool blocked = after.blocked != before.blocked;
    share =
        blocked ? std::min(1.0, static_cast<double>(after.cpu_ns - before.cpu_ns) / static_cast<double>(wall)) : 1.0;
  }
  lock.lock();
  --active_;
  return finish(*block, wall, share);
}

void Runner::run_block(Block& block) {
  for (size_t i = 0; i < block.results.size(); ++i) {
    Block::Result& r = block.results[i];
    if (r.error || r.dropped) continue;
    if (stop_.load(std::memory_order_relaxed)) return;
    try {
      std::optional<StageEvent> event;
      if (profile::recording() && job_->computes()) [[unlikely]]
        event.emplace(stage_, where_);
      job_->run(block, i);
      if (event) event->made(r.item);
    } catch (...) {
      r.error = std::current_exception();
    }
  }
  block.inputs.clear();
}

bool Runner::finish(Block& block, int64_t wall, std::optional<double> cpu_share) {
  const double n = static_cast<double>(std::max<size_t>(1, block.results.size()));
  block.done = true;
  int64_t bytes = 0;
  for (const Block::Result& r : block.results) {
    bytes += static_cast<int64_t>(bytes_of(r.item));
    for (const Block::Result& piece : r.pieces) bytes += static_cast<int64_t>(bytes_of(piece.item));
  }
  pipeline_->budget.take(bytes - block.bytes);
  block.bytes = bytes;
  element_ns_ = smoothed(element_ns_, static_cast<double>(wall) / n);
  element_bytes_ = smoothed(element_bytes_, static_cast<double>(block.bytes) / n);
  if (cpu_share) cpu_share_ = 0.6 * cpu_share_ + 0.4 * *cpu_share;
  stage_.busy_ns.fetch_add(wall, std::memory_order_relaxed);
  if (auto_depth_) depth_ = std::clamp(depth_, std::min(kMaxDepth, 8 * limit_ * block_size()), kMaxDepth);
  if (!waiting_) return false;
  const bool wanted = !ordered_ || blocks_.front()->done;
  return wanted && (urgent_ || outstanding_ >= depth_ || ended_);
}

}  // namespace runnel::data
