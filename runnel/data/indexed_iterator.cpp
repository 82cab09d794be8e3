// Iterators over views: computed where they are asked for, or ahead of that by threads.
#include "runnel/data/runner.h"

namespace runnel::data {

void compute_or_take_apart(const Indexed& view, int64_t i, Item& out, std::vector<Block::Result>& pieces) {
  try {
    view.at(i, out);
  } catch (...) {
    const auto* batches = dynamic_cast<const BatchesView*>(&view);
    if (batches == nullptr) throw;
    pieces = batches->pieces(i);
    if (pieces.empty()) throw;
    out = Item();
  }
}

namespace {

class IndexedIterator : public IteratorNode {
 public:
  explicit IndexedIterator(IndexedPtr view) : view_(std::move(view)) {}
  void save(StateWriter& out) const override {
    out.integer(static_cast<uint64_t>(at_));
    if (piece_ > 0) out.integer(piece_);
  }
  void restore(StateReader& in) override {
    at_ = in.count();
    piece_ = in.at_end() ? 0 : static_cast<size_t>(in.count());
    pieces_.clear();
  }

 protected:
  bool produce(Item& out) override {
    while (true) {
      if (piece_ < pieces_.size()) {
        Block::Result& r = pieces_[piece_++];
        if (piece_ == pieces_.size()) next();
        if (r.error) std::rethrow_exception(std::exchange(r.error, nullptr));
        out = std::move(r.item);
        return true;
      }
      if (!pieces_.empty()) next();  // all of them were given before the state was saved
      if (at_ >= view_->size()) return false;
      try {
        compute_or_take_apart(*view_, at_, out, pieces_);
        if (pieces_.empty()) {
          ++at_;
          piece_ = 0;
          return true;
        }
      } catch (...) {
        next();
        throw;
      }
    }
  }

 private:
  void next() {
    ++at_;
    piece_ = 0;
    finished_ = std::move(pieces_);
    pieces_.clear();
  }
  IndexedPtr view_;
  int64_t at_ = 0;
  std::vector<Block::Result> pieces_, finished_;  // of element at_, and of the one before
  size_t piece_ = 0;                              // the next one
};

class IndexedJob : public RunnerJob {
 public:
  explicit IndexedJob(IndexedPtr view) : view_(std::move(view)) {}
  bool claim(Block& block, int64_t want) override {
    const int64_t n = std::min(want, view_->size() - at_);
    if (n <= 0) return false;
    block.position = at_;
    block.results.resize(static_cast<size_t>(n));
    at_ += n;
    return true;
  }
  void run(Block& block, size_t i, Item& out) override { view_->at(block.position + static_cast<int64_t>(i), out); }
  void run(Block& block, size_t i) override {
    Block::Result& r = block.results[i];
    compute_or_take_apart(*view_, block.position + static_cast<int64_t>(i), r.item, r.pieces);
  }
  void skip(int64_t n) override { at_ += n; }
  void save(StateWriter& out) const override { out.integer(static_cast<uint64_t>(at_)); }
  void restore(StateReader& in) override { at_ = in.count(); }
  bool state_is_small() const override { return true; }

 private:
  IndexedPtr view_;
  int64_t at_ = 0;
};

}  // namespace

IteratorPtr iterate_indexed(const Context& ctx, const IndexedPtr& view, StageStats& stats) {
  const Wish& w = view->wish;
  IteratorPtr it;
  if (w.depth == 0 && (w.parallel == 0 || w.serial)) {
    it = std::make_unique<IndexedIterator>(view);
  } else {
    const int parallel = w.serial || w.parallel == 0 ? 1 : w.parallel;
    const int depth = w.depth > 0 ? w.depth + std::max(parallel, 0) : w.depth;
    it = std::make_unique<Runner>(ctx, std::make_unique<IndexedJob>(view), parallel, depth, w.ordered, stats);
  }
  it->set_stats(&stats);
  return it;
}

}  // namespace runnel::data
