#pragma once

// Threads that compute elements ahead of their consumer: under prefetch, and under parallel map and batch.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runnel/data/node.h"

namespace runnel::data {

// A few successive elements, claimed, computed and handed on together: a hand-over between threads costs microseconds.
struct Block {
  struct Result {
    Item item;
    std::exception_ptr error;
    bool dropped = false;        // was delivered before the state was saved
    std::vector<Result> pieces;  // in place of both
  };
  int64_t first = 0;             // the number of its first element, counted by the runner
  int64_t position = 0;          // the same, counted by the job
  std::vector<Item> inputs;      // what claim() pulled, for each result
  std::vector<int64_t> numbers;  // of the inputs, for jobs that need them
  std::vector<Result> results;
  std::string snapshot;  // the job's state before this block was claimed; empty: none was taken
  int64_t bytes = 0;     // taken from the budget: expected ones until the block is done
  bool done = false;
  size_t delivered = 0;
};

// A view of batches. Where an element of one fails, what stands before and behind it in the batch is not lost.
class BatchesView : public Indexed {
 public:
  // Batch i, which failed: its elements up to the first that fails, that one's error, and so on.
  virtual std::vector<Block::Result> pieces(int64_t i) const = 0;
};
// The same elements in another stage: under another number of threads or depth, or made otherwise.
class SameView : public BatchesView {
 public:
  explicit SameView(IndexedPtr input) : input_(std::move(input)) { wish = input_->wish; }
  int64_t size() const override { return input_->size(); }
  std::vector<Block::Result> pieces(int64_t i) const override {
    const auto* batches = dynamic_cast<const BatchesView*>(input_.get());
    return batches != nullptr ? batches->pieces(i) : std::vector<Block::Result>{};
  }

 protected:
  void compute(int64_t i, Item& out) const override { input_->at(i, out); }
  void collect(std::span<const int64_t> indices, Item& out) const override { input_->gather(indices, out); }

 private:
  IndexedPtr input_;
};

// Element i; of a batch that failed its pieces.
void compute_or_take_apart(const Indexed& view, int64_t i, Item& out, std::vector<Block::Result>& pieces);

// What a Runner runs. claim() and the state are for one thread at a time, run() for many.
class RunnerJob {
 public:
  virtual ~RunnerJob() = default;
  // Takes up to `want` elements from the input and sizes block.results; false when there is nothing more. An error met
  // on the way becomes the result it stands for.
  virtual bool claim(Block& block, int64_t want) = 0;
  virtual void run(Block& block, size_t i, Item& out) = 0;
  // The same; jobs whose elements may come in pieces say so here.
  virtual void run(Block& block, size_t i) { run(block, i, block.results[i].item); }
  // Passes over elements without computing them.
  virtual void skip(int64_t elements) = 0;
  virtual void save(StateWriter& out) const = 0;
  virtual void restore(StateReader& in) = 0;
  // Does run() do anything?
  virtual bool computes() const { return true; }
  // Is the state a number or two? Then each block has it.
  virtual bool state_is_small() const { return false; }
};

// Elements of an input as they are: the job of prefetch.
class PullJob : public RunnerJob {
 public:
  explicit PullJob(IteratorPtr input) : input_(std::move(input)) {}
  bool claim(Block& block, int64_t want) override;
  void run(Block&, size_t, Item&) override {}
  bool computes() const override { return false; }
  bool pull(Item& out) { return input_->next(out); }  // the next element, without a block; false at the end
  void skip(int64_t n) override;
  void save(StateWriter& out) const override { save_nested(*input_, out); }
  void restore(StateReader& in) override { restore_nested(*input_, in); }

 private:
  IteratorPtr input_;
};

// The pipeline that this thread was made for by a Runner; null on threads of the program.
const Pipeline* working_for();

class Runner : public IteratorNode {
 public:
  Runner(const Context& ctx, std::unique_ptr<RunnerJob> job, int parallel, int depth, bool ordered, StageStats& stats);
  ~Runner() override;

  void save(StateWriter& out) const override;
  void restore(StateReader& in) override;
  // Works ahead from now on, not from when that is found to pay. Where no thread is to be had, a consumer that can do
  // without goes on alone.
  void begin();
  bool works_ahead() const { return started_; }
  // Is an element ready, or the end reached?
  bool ready();

 protected:
  bool produce(Item& out) override;
  bool hands_over() const override { return !alone_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  static constexpr int kMaxThreads = 64;
  static constexpr int64_t kMaxDepth = 4096;
  void start();
  void stop();
  void spawn();
  void work(int number);
  bool has_room() const;
  void run_block(Block& block);
  bool work_block(Lock& lock);
  bool finish(Block& block, int64_t wall, std::optional<double> cpu_share);
  bool advance();
  std::shared_ptr<Block> take_ready();
  bool retire();
  void tune(int64_t now);
  bool pull_alone(Item& out);
  int64_t block_size() const;
  int64_t expected_bytes(int64_t elements) const;

  std::shared_ptr<Pipeline> pipeline_;
  std::unique_ptr<RunnerJob> job_;
  const bool auto_parallel_, auto_depth_, ordered_;
  StageStats& stage_;

  std::mutex claim_mutex_;  // held while the job claims; before mutex_
  int64_t claimed_ = 0;     // elements; guarded by claim_mutex_
  int64_t snapshot_at_ = 0;
  std::vector<int64_t> passed_over_;  // restored while out of order: elements that were delivered before, rising

  mutable std::mutex mutex_;
  std::condition_variable work_, ready_;
  std::vector<std::thread> threads_;
  int limit_;                                  // threads that may work
  int64_t depth_;                              // elements that may be ready or under way
  std::deque<std::shared_ptr<Block>> blocks_;  // claimed and not yet retired, in order
  int64_t outstanding_ = 0;                    // elements in blocks_ or about to be claimed
  int idle_ = 0;
  int active_ = 0;  // threads that have a block, the consumer included
  int64_t measured_blocks_ = 0;
  bool helps_ = false;            // the consumer computes rather than wait
  bool parked_ = false;           // and the last thread leaves its place to it
  bool consumer_inside_ = false;  // of next()
  int64_t consumer_left_ = 0;
  bool ended_ = false;
  std::atomic<bool> stop_{false};  // written with mutex_ held
  bool waiting_ = false;           // the consumer sleeps until an element is ready
  bool urgent_ = false;            // and has waited for long
  double element_ns_ = 0;          // running mean of the work for one element
  double element_bytes_ = 0;
  double cpu_share_ = 1;  // of the time that the work takes
  bool was_full_ = false;
  int64_t tuned_at_ = 0, waited_ = 0, waited_before_ = 0;

  // The consumer's.
  bool started_ = false;
  // A queue of elements that are made faster than threads hand them over has no thread: the consumer pulls them.
  bool alone_;
  int64_t pulled_ = 0;      // elements
  int64_t overlap_ns_ = 0;  // what a thread would have saved
  std::shared_ptr<Block> current_;
  size_t at_ = 0;
  size_t piece_ = 0;        // of the element at_: the next one; where it is not yet there, pieces to pass over
  std::string base_state_;  // of the job, before element base_
  int64_t base_ = 0;
  int64_t retired_ = 0;  // every element before this one was delivered and its block forgotten
};

// The iterator over a view: computed where it is asked for, or ahead of that by threads, as the view's stages wish.
IteratorPtr iterate_indexed(const Context& ctx, const IndexedPtr& view, StageStats& stats);

}  // namespace runnel::data
