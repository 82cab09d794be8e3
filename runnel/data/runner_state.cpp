// Where threads that work ahead were, and going on from there.
#include "runnel/data/runner.h"

namespace runnel::data {

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
