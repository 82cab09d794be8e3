#include "runnel/data/runner.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "runnel/base/flush_denormals.h"
#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/data/stage_event.h"
#include "runnel/tensor/thread_context.h"

namespace runnel::data {
namespace {

constexpr int64_t kBlockNs = 20'000;  // the work worth a hand-over between threads
constexpr double kBlockBytes = 1 << 18;
constexpr std::chrono::microseconds kPatience{50};  // of a consumer, before it wants to be woken for a single element
constexpr std::chrono::microseconds kParked{500};   // between two looks of a thread whose place the consumer took
constexpr double kHelpNs = 200'000;                 // elements that take longer are left to threads
constexpr int64_t kAwayNs = 100'000;                // the consumer has work of its own
constexpr double kAutoDepthBytes = 16 << 20;        // queues grow by themselves up to this
constexpr int64_t kThreadPaysNs = 1000;             // what a thread must save for each element
constexpr int64_t kSureNs = 100'000;                // and in all, before one is started
constexpr int64_t kPullsPerLook = 16;               // elements between two looks at the clock, where they are fast
constexpr int64_t kTuneNs = 10'000'000;             // between two looks at the figures
constexpr int64_t kSnapshotEvery = 16;              // elements between two saved states of the input
constexpr int kMaxThreads = 64;
constexpr int64_t kMaxDepth = 4096;

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

// An element without a thread. A thread would have saved the smaller of what elements take to make and what the
// consumer does between them; once that is enough, begins.
bool Runner::pull_alone(Item& out) {
  // The first element opens files and fills buffers: it tells nothing of the others.
  const int64_t every = overlap_ns_ > kThreadPaysNs * pulled_ || pulled_ < kPullsPerLook ? 1 : kPullsPerLook;
  const bool look = pulled_ > 0 && pulled_ % every == 0;
  const int64_t start = look && consumer_left_ != 0 ? now_ns() : 0;
  const bool more = static_cast<PullJob&>(*job_).pull(out);
  if (start != 0) overlap_ns_ += every * std::min(now_ns() - start, start - consumer_left_);
  ++pulled_;
  consumer_left_ = pulled_ % every == 0 || every == 1 ? now_ns() : 0;
  if (more && overlap_ns_ > std::max(kSureNs, kThreadPaysNs * pulled_)) begin();
  return more;
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

std::shared_ptr<Block> Runner::take_ready() {
  for (const auto& b : blocks_) {
    if (b->done && b->delivered == 0) return b;
    if (ordered_) break;
  }
  return nullptr;
}

// The current block was delivered: its place is free. Says whether threads are to be woken for it.
bool Runner::retire() {
  if (!current_) return false;
  outstanding_ -= static_cast<int64_t>(current_->results.size());
  pipeline_->budget.give(current_->bytes);
  current_->bytes = 0;
  current_->delivered = current_->results.size();
  current_.reset();
  while (!blocks_.empty() && blocks_.front()->delivered > 0 &&
         blocks_.front()->delivered == blocks_.front()->results.size()) {
    retired_ = blocks_.front()->first + static_cast<int64_t>(blocks_.front()->results.size());
    blocks_.pop_front();
    if (!blocks_.empty() && !blocks_.front()->snapshot.empty()) {
      base_ = blocks_.front()->first;
      base_state_ = blocks_.front()->snapshot;
    }
  }
  // A thread that waits for room is woken once there is a good deal of it; one that is parked wakes by itself.
  return idle_ > (parked_ ? 1 : 0) && depth_ - outstanding_ >= std::max(block_size(), depth_ / 4);
}

bool Runner::advance() {
  if (!started_) start();
  profile::Span wait(profile::Kind::input_wait, stage_.path, profile::current_step());
  Lock lock(mutex_);
  consumer_inside_ = true;
  const bool room = retire();
  int64_t waited_from = 0;
  while (!(current_ = take_ready())) {
    if (ended_ && blocks_.empty()) {
      waiting_ = urgent_ = consumer_inside_ = false;
      return false;
    }
    if (helps_ && !ended_ && element_ns_ < kHelpNs) {
      // With nothing to do but wait, the consumer is one of the threads: no hand-over is cheaper. A thread leaves its
      // place while the consumer waits for a moment; then it sleeps like any other.
      parked_ = waited_from == 0;
      if (active_ < limit_ && has_room()) {
        parked_ = true;
        const SerialScope parallel_over_elements;
        work_block(lock);
        waited_from = 0;
        continue;
      }
    }
    if (idle_ > (parked_ ? 1 : 0) && has_room()) work_.notify_all();
    // Waking a thread costs as much as a small batch. So it sleeps for a moment, in which many may become ready; if
    // none does, it wants to be woken for the first.
    waiting_ = true;
    if (waited_from == 0) {
      waited_from = now_ns();
      ready_.wait_for(lock, kPatience);
    } else {
      urgent_ = true;
      if (std::exchange(parked_, false)) work_.notify_all();
      ready_.wait(lock);
    }
  }
  waiting_ = urgent_ = consumer_inside_ = false;
  if (helps_) consumer_left_ = now_ns();
  at_ = 0;
  if (waited_from != 0) {
    const int64_t waited = now_ns() - waited_from;
    waited_ += waited;
    stage_.wait_ns.fetch_add(waited, std::memory_order_relaxed);
  }
  if (auto_parallel_ || auto_depth_) tune(now_ns());
  int ready = 0;
  for (const auto& b : blocks_) ready += b->done ? static_cast<int>(b->results.size()) : 0;
  stage_.ready.store(ready, std::memory_order_relaxed);
  if (wait) wait.set_detail(fmt::format("{} of {} elements ready", ready, depth_));
  lock.unlock();
  if (room) work_.notify_all();
  return true;
}

void Runner::tune(int64_t now) {
  if (tuned_at_ == 0) tuned_at_ = now;
  if (now - tuned_at_ < kTuneNs) return;
  const double share = static_cast<double>(waited_ - waited_before_) / static_cast<double>(now - tuned_at_);
  tuned_at_ = now;
  waited_before_ = waited_;
  if (share > 0.05) {
    // Work that mostly blocks (files, sleep) keeps more threads than CPUs; work that computes does not.
    const int most =
        std::min(kMaxThreads, static_cast<int>(std::ceil(pipeline_->threads / std::max(cpu_share_, 0.02))));
    if (auto_parallel_ && cpu_share_ < 0.7 && limit_ < most) {
      limit_ = std::min(most, limit_ + std::max(1, limit_ / 2));
      parked_ = helps_ = false;  // what blocks is left to threads
      spawn();
      work_.notify_all();
    }
    if (auto_depth_ && was_full_ && static_cast<double>(2 * depth_) * element_bytes_ < kAutoDepthBytes) {
      depth_ = std::min(kMaxDepth, depth_ * 2);
    }
  }
  was_full_ = false;
  stage_.parallelism = limit_;
  stage_.depth = static_cast<int>(depth_);
}

bool Runner::produce(Item& out) {
  if (alone_) return pull_alone(out);
  while (true) {
    while (current_ && at_ < current_->results.size()) {
      Block::Result& whole = current_->results[at_];
      const bool in_pieces = piece_ < whole.pieces.size();
      Block::Result& r = in_pieces ? whole.pieces[piece_++] : whole;
      if (!in_pieces || piece_ == whole.pieces.size()) {
        const bool was_given = !in_pieces && !whole.pieces.empty();
        current_->delivered = ++at_;
        piece_ = 0;
        if (whole.dropped || was_given) continue;
      }
      if (r.error) std::rethrow_exception(std::exchange(r.error, nullptr));
      out = std::move(r.item);
      return true;
    }
    if (!advance()) return false;
  }
}

bool Runner::ready() {
  if (current_ && at_ < current_->results.size()) return true;
  if (!started_) return false;
  const Lock lock(mutex_);
  if (retire()) work_.notify_all();
  return take_ready() != nullptr || (ended_ && blocks_.empty());
}

// The input's state at some element not later than where the consumer is, and which elements from there on it has had.
void Runner::save(StateWriter& out) const {
  const Lock lock(mutex_);
  if (!started_ && base_state_.empty()) {
    StateWriter w;
    job_->save(w);
    out.text(w.bytes());
    out.integer(0);
    out.integer(passed_over_.size());
    for (const int64_t at : passed_over_) out.integer(static_cast<uint64_t>(at));
    if (piece_ > 0 && ordered_) out.integer(piece_);
    return;
  }
  std::vector<int64_t> had;  // in order
  int64_t end = base_;
  for (const auto& b : blocks_) {
    for (; end < b->first; ++end) had.push_back(end);
    for (size_t i = 0; i < b->results.size(); ++i, ++end) {
      if (i < b->delivered || b->results[i].dropped) had.push_back(end);
    }
  }
  if (blocks_.empty()) {
    for (; end < retired_; ++end) had.push_back(end);
  }
  for (const int64_t at : passed_over_) {
    if (at >= end) had.push_back(at);
  }
  size_t prefix = 0;
  while (prefix < had.size() && had[prefix] == base_ + static_cast<int64_t>(prefix)) ++prefix;
  out.text(base_state_);
  out.integer(prefix);
  out.integer(had.size() - prefix);
  for (size_t i = prefix; i < had.size(); ++i) out.integer(static_cast<uint64_t>(had[i] - base_));
  if (piece_ > 0 && ordered_) out.integer(piece_);
}

void Runner::restore(StateReader& in) {
  stop();
  StateReader job(in.text());
  job_->restore(job);
  const int64_t prefix = in.count();
  job_->skip(prefix);
  passed_over_.clear();
  for (int64_t n = in.count(); n > 0; --n) {
    const int64_t at = in.count() - prefix;
    if (at < 0 || (!passed_over_.empty() && at <= passed_over_.back())) StateReader::fail();
    passed_over_.push_back(at);
  }
  piece_ = in.at_end() ? 0 : static_cast<size_t>(in.count());
  claimed_ = snapshot_at_ = base_ = retired_ = 0;
  base_state_.clear();
  if (!passed_over_.empty() || piece_ > 0) alone_ = false;  // counted by those who work ahead
}

bool PullJob::claim(Block& block, int64_t want) {
  for (int64_t k = 0; k < want; ++k) {
    Block::Result r;
    try {
      if (!input_->next(r.item)) break;
    } catch (...) {
      r.error = std::current_exception();
    }
    const bool failed = r.error != nullptr;
    block.results.push_back(std::move(r));
    if (failed) break;
  }
  return !block.results.empty();
}

void PullJob::skip(int64_t n) {
  for (Item item; n > 0; --n) {
    try {
      if (!input_->next(item)) return;
    } catch (const Error&) {
      // It was delivered before the state was saved.
    }
  }
}

}  // namespace runnel::data
