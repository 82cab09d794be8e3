#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/data/rows.h"
#include "runnel/data/runner.h"

namespace runnel::data {
namespace {

class BatchView : public BatchesView {
 public:
  BatchView(IndexedPtr input, int64_t batch, bool drop) : input_(std::move(input)), batch_(batch), drop_(drop) {
    const int64_t n = input_->size();
    size_ = n == kEndless ? kEndless : drop ? n / batch : groups_of(n, batch);
  }
  int64_t size() const override { return size_; }
  std::vector<Block::Result> pieces(int64_t i) const override {
    std::vector<Block::Result> all;
    const int64_t end = end_of(i);
    std::vector<Item> good;
    const auto flush = [&] {
      if (good.empty() || drop_) return;
      Stacker stacker(static_cast<int64_t>(good.size()));
      for (const Item& item : good) stacker.add(item);
      stacker.finish(all.emplace_back().item);
    };
    for (int64_t k = i * batch_; k < end; ++k) {
      Item item;
      try {
        input_->at(k, item);
        good.push_back(std::move(item));
      } catch (...) {
        flush();
        good.clear();
        all.emplace_back().error = std::current_exception();
      }
    }
    if (all.empty()) return all;  // it is the batch that fails, not an element
    flush();
    return all;
  }

 protected:
  void compute(int64_t i, Item& out) const override {
    thread_local std::vector<int64_t> indices;
    // A batch of batches comes here again: its inner indices are another list.
    std::vector<int64_t> mine = std::move(indices);
    mine.clear();
    const int64_t end = end_of(i);
    for (int64_t k = i * batch_; k < end; ++k) mine.push_back(k);
    input_->gather(mine, out);
    indices = std::move(mine);
  }

 private:
  int64_t end_of(int64_t i) const {
    const int64_t begin = i * batch_, left = input_->size() - begin;
    return begin + std::min(left, batch_);
  }

  IndexedPtr input_;
  int64_t batch_;
  bool drop_;
  int64_t size_;
};

class BatchIterator : public IteratorNode {
 public:
  BatchIterator(IteratorPtr input, int64_t batch, bool drop) : input_(std::move(input)), batch_(batch), drop_(drop) {}
  void save(StateWriter& out) const override { save_nested(*input_, out); }
  void restore(StateReader& in) override {
    error_ = nullptr;
    restore_nested(*input_, in);
  }

 protected:
  bool produce(Item& out) override {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    const int64_t n = input_->next_batch(batch_, out, error_);
    // What was read before an error is delivered first.
    if (error_ && (n == 0 || drop_)) std::rethrow_exception(std::exchange(error_, nullptr));
    if (n == 0 || (drop_ && n < batch_)) return false;
    return true;
  }

 private:
  IteratorPtr input_;
  int64_t batch_;
  bool drop_;
  std::exception_ptr error_;
};

class BatchJob : public RunnerJob {
 public:
  BatchJob(IteratorPtr input, int64_t batch, bool drop) : input_(std::move(input)), batch_(batch), drop_(drop) {}
  bool claim(Block& block, int64_t want) override {
    block.numbers.push_back(0);  // where the elements of each result begin
    for (int64_t k = 0; k < want && !error_; ++k) {
      const size_t before = block.inputs.size();
      try {
        for (Item item; static_cast<int64_t>(block.inputs.size() - before) < batch_ && input_->next(item);) {
          block.inputs.push_back(std::move(item));
        }
      } catch (...) {
        error_ = std::current_exception();
      }
      const auto n = static_cast<int64_t>(block.inputs.size() - before);
      if (n == 0 || (drop_ && n < batch_)) break;
      block.numbers.push_back(static_cast<int64_t>(block.inputs.size()));
      block.results.emplace_back();
      if (n < batch_) break;
    }
    if (error_) {
      block.numbers.push_back(static_cast<int64_t>(block.inputs.size()));
      block.results.emplace_back().error = std::exchange(error_, nullptr);
    }
    return !block.results.empty();
  }
  void run(Block& block, size_t i, Item& out) override {
    Stacker stacker(block.numbers[i + 1] - block.numbers[i]);
    for (int64_t k = block.numbers[i]; k < block.numbers[i + 1]; ++k) stacker.add(block.inputs[static_cast<size_t>(k)]);
    stacker.finish(out);
  }
  void skip(int64_t n) override {
    for (Block block; n > 0 && claim(block, 1); block = Block()) n -= static_cast<int64_t>(block.results.size());
  }
  void save(StateWriter& out) const override { save_nested(*input_, out); }
  void restore(StateReader& in) override { restore_nested(*input_, in); }

 private:
  IteratorPtr input_;
  int64_t batch_;
  bool drop_;
  std::exception_ptr error_;
};

class BatchNode : public DatasetNode {
 public:
  BatchNode(NodePtr input, int64_t batch, const BatchOptions& options)
      : DatasetNode({std::move(input)}), batch_(batch), options_(options) {}
  std::string name() const override { return options_.num_parallel_calls == 0 ? "Batch" : "ParallelBatch"; }
  std::string details() const override { return fmt::format("{}", batch_) + (options_.drop_remainder ? ", drop" : ""); }
  ElementSpec element_spec() const override {
    const int64_t n = input()->cardinality();
    const bool full = options_.drop_remainder || n == INFINITE_CARDINALITY || (n > 0 && n % batch_ == 0);
    return batched(input()->element_spec(), full ? batch_ : kUnknownDim);
  }
  int64_t cardinality() const override {
    const int64_t n = input()->cardinality();
    return n < 0 ? n : options_.drop_remainder ? n / batch_ : groups_of(n, batch_);
  }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    const IndexedPtr view = input()->index(ctx);
    if (!view) return nullptr;
    auto made = std::make_shared<BatchView>(view, batch_, options_.drop_remainder);
    made->wish = view->wish.with({.parallel = options_.num_parallel_calls});
    return made;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    if (options_.num_parallel_calls != 0) return make_iterator_ahead(ctx, 0);
    return std::make_unique<BatchIterator>(input()->iterate(ctx), batch_, options_.drop_remainder);
  }
  IteratorPtr make_iterator_ahead(const Context& ctx, int depth) const override {
    const int calls = options_.num_parallel_calls;
    if (calls == 0) return nullptr;
    return std::make_unique<Runner>(
        ctx, std::make_unique<BatchJob>(input()->iterate(ctx), batch_, options_.drop_remainder), calls,
        depth > 0 ? depth + std::max(calls, 0) : depth, true, ctx.pipeline->stage_by_id(ctx.stage));
  }

 private:
  int64_t batch_;
  BatchOptions options_;
};

}  // namespace

NodePtr nodes::batch(NodePtr input, int64_t size, const BatchOptions& options) {
  if (size < 1) throw invalid_argument("[batch] the batch size is {}, not positive", size);
  check_parallel("batch", "num_parallel_calls", options.num_parallel_calls);
  return std::make_shared<BatchNode>(std::move(input), size, options);
}

}  // namespace runnel::data
