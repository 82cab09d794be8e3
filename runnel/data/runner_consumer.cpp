// The consumer of threads that work ahead: what it takes, how it helps, and how many threads it turns out to need.
#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/data/runner.h"
#include "runnel/data/stage_event.h"

namespace runnel::data {
namespace {

constexpr std::chrono::microseconds kPatience{50};  // of a consumer, before it wants to be woken for a single element
constexpr double kHelpNs = 200'000;                 // elements that take longer are left to threads
constexpr double kAutoDepthBytes = 16 << 20;        // queues grow by themselves up to this
constexpr int64_t kThreadPaysNs = 1000;             // what a thread must save for each element
constexpr int64_t kSureNs = 100'000;                // and in all, before one is started
constexpr int64_t kPullsPerLook = 16;               // elements between two looks at the clock, where they are fast
constexpr int64_t kTuneNs = 10'000'000;             // between two looks at the figures

}  // namespace

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

}  // namespace runnel::data
