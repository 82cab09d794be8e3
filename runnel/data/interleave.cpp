// Datasets made from elements, their elements one after the other or in turns.
#include <string_view>

#include "runnel/base/cpu_count.h"
#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/data/runner.h"
#include "runnel/op/random_context.h"
#include "runnel/summary/kept_defaults.h"

namespace runnel::data {
namespace {

// Lets so many readers work at a time.
class Gate {
 public:
  explicit Gate(int limit) : free_(limit) {}
  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ > 0; });
    --free_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    ++free_;
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
};

// An input of the cycle that is read ahead.
class ReaderJob : public PullJob {
 public:
  ReaderJob(IteratorPtr input, std::shared_ptr<Gate> gate) : PullJob(std::move(input)), gate_(std::move(gate)) {}
  bool claim(Block& block, int64_t want) override {
    if (!gate_) return PullJob::claim(block, want);
    gate_->enter();
    const bool more = PullJob::claim(block, want);
    gate_->leave();
    return more;
  }

 private:
  std::shared_ptr<Gate> gate_;
};

class InterleaveIterator : public IteratorNode {
 public:
  InterleaveIterator(const Context& ctx, const char* name, IteratorPtr input, std::shared_ptr<const ExpandFn> f,
                     uint64_t key, int64_t cycle, int64_t block, int parallel, bool ordered)
      : ctx_(ctx),
        name_(name),
        input_(std::move(input)),
        f_(std::move(f)),
        key_(key),
        block_(block),
        parallel_(parallel),
        ordered_(ordered || parallel == 0),
        ahead_(parallel > 0 || !ordered_),
        slots_(static_cast<size_t>(cycle)) {
    if (parallel > 0 && parallel < cycle) gate_ = std::make_shared<Gate>(parallel);
  }

  void save(StateWriter& out) const override {
    out.integer(slot_);
    out.integer(static_cast<uint64_t>(in_block_));
    out.integer(ended_);
    out.integer(opened_);
    // An input that failed ahead of its turn fails again, in its turn.
    const Slot* failed = failed_slot_ < slots_.size() ? &slots_[failed_slot_] : nullptr;
    out.integer(static_cast<uint64_t>(failed ? failed->number : pulled_));
    if (failed) {
      out.text(failed->before);
    } else {
      save_nested(*input_, out);
    }
    for (const Slot& s : slots_) {
      out.integer(s.it != nullptr);
      if (!s.it) continue;
      out.integer(static_cast<uint64_t>(s.number));
      out.text(s.before);
      save_nested(*s.it, out);
    }
  }
  void restore(StateReader& in) override {
    slot_ = static_cast<size_t>(in.count(static_cast<int64_t>(slots_.size()) - 1));
    in_block_ = in.count(block_ - 1);
    const bool ended = in.integer() != 0;
    ended_ = false;
    opened_ = in.integer() != 0;
    const int64_t pulled = in.count();
    const std::string_view input_state = in.text();
    failed_slot_ = kNone;
    failure_ = nullptr;
    for (Slot& s : slots_) {
      s = Slot();
      if (in.integer() == 0) continue;
      pulled_ = in.count();
      const std::string_view before = in.text();
      StateReader reader(before);
      input_->restore(reader);
      if (!open(s))
        throw Error(Code::data_loss, "[interleave] the input has fewer elements than when the state was saved");
      restore_nested(*s.it, in);
    }
    StateReader reader(input_state);
    input_->restore(reader);
    pulled_ = pulled;
    ended_ = ended;
  }

 protected:
  bool produce(Item& out) override {
    if (parallel_ != 0 && !opened_) {
      // Every reader of the cycle starts at once; they are the inputs that the first turn meets in this order.
      opened_ = true;
      for (size_t i = 0; i < slots_.size(); ++i) {
        if (!slots_[i].it && !open_ahead(i)) break;
      }
    }
    while (true) {
      check_cancelled(*ctx_.pipeline);
      if (!ordered_) find_ready();
      Slot& s = slots_[slot_];
      if (slot_ == failed_slot_) {
        failed_slot_ = kNone;
        std::rethrow_exception(std::exchange(failure_, nullptr));
      }
      if (!s.it && !ended_) open(s);
      if (!s.it) {
        if (ended_ && none_open()) return false;
        turn();
        continue;
      }
      try {
        if (s.it->next(out)) {
          if (!ahead_ && s.runner != nullptr && s.runner->works_ahead()) read_ahead();
          if (++in_block_ == block_) turn();
          return true;
        }
      } catch (...) {
        if (++in_block_ == block_) turn();
        throw;
      }
      s = Slot();
      if (parallel_ != 0) open_ahead(slot_);  // the next file is opened while others are read
      turn();
    }
  }

 private:
  struct Slot {
    IteratorPtr it;
    Runner* runner = nullptr;
    std::string before;  // the input's state before its element
    int64_t number = 0;  // of that element
  };

  // Opens the input of a slot before its turn. An error waits for the turn, and nothing is opened ahead meanwhile: so
  // every input goes to the slot, and every error to the place, that it has without parallel calls.
  bool open_ahead(size_t i) {
    if (failed_slot_ != kNone) return false;
    try {
      return open(slots_[i]);
    } catch (...) {
      failure_ = std::current_exception();
      failed_slot_ = i;
      return false;
    }
  }
  bool open(Slot& s) {
    if (ended_) return false;
    StateWriter w;
    input_->save(w);
    s.before = w.take();
    s.number = pulled_;
    Item item;
    if (!input_->next(item)) {
      ended_ = true;
      return false;
    }
    ++pulled_;
    NodePtr node;
    {
      RandomContext random = RandomContext::of_element(mix(key_, static_cast<uint64_t>(s.number)));
      const RandomScope scope(random);
      node = in_callable(name_, where_, [&] { return (*f_)(item); });
    }
    IteratorPtr it = node->iterate(ctx_);
    if (parallel_ != 0) {
      StageStats& stats = ctx_.pipeline->stage(ctx_.stage, "Reader", "");
      auto runner =
          std::make_unique<Runner>(ctx_, std::make_unique<ReaderJob>(std::move(it), gate_), 1, AUTOTUNE, true, stats);
      runner->set_stats(&stats);
      s.runner = runner.get();
      if (ahead_) runner->begin();
      s.it = std::move(runner);
    } else {
      s.it = std::move(it);
    }
    return true;
  }
  void read_ahead() {
    ahead_ = true;
    for (Slot& s : slots_) {
      if (s.runner != nullptr) s.runner->begin();
    }
  }
  void turn() {
    in_block_ = 0;
    slot_ = (slot_ + 1) % slots_.size();
  }
  bool none_open() const {
    return failed_slot_ == kNone &&
           std::none_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.it != nullptr; });
  }
  // The next reader that has something; the one whose turn it is where none has.
  void find_ready() {
    for (size_t k = 0; k < slots_.size(); ++k) {
      const size_t at = (slot_ + k) % slots_.size();
      if (at == failed_slot_ || (slots_[at].runner != nullptr && slots_[at].runner->ready())) {
        if (at != slot_) in_block_ = 0;
        slot_ = at;
        return;
      }
    }
  }

  Context ctx_;
  const char* name_;  // of the function of the API
  IteratorPtr input_;
  std::shared_ptr<const ExpandFn> f_;
  uint64_t key_;
  int64_t block_;
  int parallel_;
  bool ordered_;
  bool ahead_;  // readers have threads from the beginning; with AUTOTUNE, once the first of them wants one
  std::shared_ptr<Gate> gate_;
  std::vector<Slot> slots_;
  size_t slot_ = 0;
  int64_t in_block_ = 0;
  int64_t pulled_ = 0;
  bool ended_ = false;
  bool opened_ = false;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t failed_slot_ = kNone;
  std::exception_ptr failure_;  // of that slot
};

class InterleaveNode : public DatasetNode {
 public:
  InterleaveNode(NodePtr input, ExpandFn f, const InterleaveOptions& options, const char* name,
                 const Structure* structure)
      : DatasetNode({std::move(input)}),
        f_(std::make_shared<ExpandFn>(std::move(f))),
        options_(options),
        name_(name),
        structure_(structure) {}
  std::string name() const override { return name_; }
  std::string details() const override {
    return options_.cycle_length == 1 ? "" : fmt::format("{}, {}", options_.cycle_length, options_.block_length);
  }
  // Of the datasets made only the type is known.
  ElementSpec element_spec() const override { return unknown_spec(structure_); }
  int64_t cardinality() const override { return input()->cardinality() == 0 ? 0 : UNKNOWN_CARDINALITY; }
  uint64_t seed() const override { return seed_; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    return std::make_unique<InterleaveIterator>(
        ctx, std::string_view(name_) == "FlatMap" ? "flat_map" : "interleave", input()->iterate(ctx), f_,
        mix(seed_in(ctx), ctx.epoch), options_.cycle_length, options_.block_length, options_.num_parallel_calls,
        options_.deterministic.value_or(ctx.pipeline->options.deterministic.value_or(true)));
  }

 private:
  std::shared_ptr<const ExpandFn> f_;
  InterleaveOptions options_;
  const char* name_;
  const Structure* structure_;
  uint64_t seed_ = draw_seed();
};

}  // namespace

NodePtr nodes::interleave(NodePtr input, ExpandFn f, const InterleaveOptions& options, const Structure* structure) {
  InterleaveOptions set = options;
  check_parallel("interleave", "num_parallel_calls", set.num_parallel_calls);
  check_parallel("interleave", "cycle_length", set.cycle_length);
  if (set.cycle_length <= 0) set.cycle_length = usable_cpus();
  if (set.block_length < 1) throw invalid_argument("[interleave] block_length is {}, not positive", set.block_length);
  return std::make_shared<InterleaveNode>(std::move(input), summary::with_kept_defaults(std::move(f)), set,
                                          set.num_parallel_calls == 0 ? "Interleave" : "ParallelInterleave", structure);
}

NodePtr nodes::flat_map(NodePtr input, ExpandFn f, const Structure* structure) {
  return std::make_shared<InterleaveNode>(std::move(input), summary::with_kept_defaults(std::move(f)),
                                          InterleaveOptions{.cycle_length = 1}, "FlatMap", structure);
}

}  // namespace runnel::data
