// Random order. Over an indexed input it is a permutation of numbers; else a buffer of elements, as in TensorFlow:
// filled up first, then each step gives one of its elements at random.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/philox.h"
#include "runnel/data/input_log.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"

namespace runnel::data {
namespace {

// Draw number i of a stream, in [0, n).
uint64_t draw(uint64_t key, uint64_t i, uint64_t n) {
  Philox gen(key);
  gen.skip(i / 2);
  const Philox::Block words = gen();
  const uint64_t x = i % 2 == 0 ? uniform_bits64(words[0], words[1]) : uniform_bits64(words[2], words[3]);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * n) >> 64);
}

// The same draws one after the other, many at a time.
class Draws {
 public:
  explicit Draws(uint64_t key) : gen_(key) {}
  uint64_t operator()(uint64_t n) {
    if (at_ == kWords) {
      philox_fill(gen_, words_, kWords / 4);
      at_ = 0;
    }
    const uint64_t x = uniform_bits64(words_[at_], words_[at_ + 1]);
    at_ += 2;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * n) >> 64);
  }

 private:
  static constexpr int kWords = 1024;
  Philox gen_;
  uint32_t words_[kWords];
  int at_ = kWords;
};

// The numbers 0..n-1 in the order in which a buffer of the given size gives them.
template <class Int>
std::vector<Int> shuffled(int64_t n, int64_t buffer, uint64_t key) {
  std::vector<Int> order(static_cast<size_t>(n)), held;
  Draws draws(key);
  held.reserve(static_cast<size_t>(std::min(n, buffer)));
  Int next = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    while (static_cast<int64_t>(held.size()) < buffer && next < static_cast<Int>(n)) held.push_back(next++);
    const uint64_t r = draws(held.size());
    order[i] = held[r];
    held[r] = held.back();
    held.pop_back();
  }
  return order;
}

class ShuffleView : public Indexed {
 public:
  ShuffleView(IndexedPtr input, int64_t buffer, uint64_t key) : input_(std::move(input)) {
    const int64_t n = input_->size();
    if (n <= INT32_MAX) {
      small_ = shuffled<uint32_t>(n, buffer, key);
    } else {
      large_ = shuffled<int64_t>(n, buffer, key);
    }
  }
  int64_t size() const override { return input_->size(); }

 protected:
  void compute(int64_t i, Item& out) const override { input_->at(number(i), out); }
  void collect(std::span<const int64_t> indices, Item& out) const override {
    std::vector<int64_t> there;
    there.reserve(indices.size());
    for (const int64_t i : indices) there.push_back(number(i));
    input_->gather(there, out);
  }

 private:
  int64_t number(int64_t i) const {
    return small_.empty() ? large_[static_cast<size_t>(i)] : static_cast<int64_t>(small_[static_cast<size_t>(i)]);
  }
  IndexedPtr input_;
  std::vector<uint32_t> small_;
  std::vector<int64_t> large_;
};

// Its state has no elements: which of the input's elements the buffer holds follows from the draws, and they are read
// again from a state of the input that was kept for the oldest of them.
class ShuffleIterator : public IteratorNode {
 public:
  // `cardinality` of the input, where it is known.
  ShuffleIterator(IteratorPtr input, int64_t cardinality, int64_t buffer, uint64_t key,
                  std::shared_ptr<Pipeline> pipeline)
      : input_(std::move(input), std::max<int64_t>(16, buffer / 8), [this] { return oldest(); }),
        pipeline_(std::move(pipeline)),
        most_(cardinality >= 0 ? cardinality : StateReader::kMost),
        buffer_(buffer),
        key_(key) {}
  ~ShuffleIterator() override { pipeline_->budget.give(bytes_); }

  void save(StateWriter& out) const override {
    out.integer(emitted_);
    out.integer(ended_);
    out.integer(static_cast<uint64_t>(input_.pulled()));
    input_.save(out);
  }

  void restore(StateReader& in) override {
    const int64_t emitted = in.count();
    ended_ = in.integer() != 0;
    const int64_t pulled = in.count(most_);
    if (emitted > pulled || pulled - emitted > buffer_) StateReader::fail();
    emitted_ = static_cast<uint64_t>(emitted);
    held_.clear();
    pipeline_->budget.give(std::exchange(bytes_, 0));
    // What the buffer held, by number.
    std::vector<int64_t> origins;
    int64_t next = 0;
    Draws draws(key_);
    for (uint64_t e = 0; e < emitted_; ++e) {
      while (static_cast<int64_t>(origins.size()) < buffer_ && next < pulled) origins.push_back(next++);
      const uint64_t r = draws(origins.size());
      origins[r] = origins.back();
      origins.pop_back();
    }
    while (next < pulled) origins.push_back(next++);
    std::vector<std::pair<int64_t, size_t>> wanted;  // number, place
    for (size_t k = 0; k < origins.size(); ++k) wanted.emplace_back(origins[k], k);
    std::sort(wanted.begin(), wanted.end());
    held_.resize(origins.size());
    auto want = wanted.begin();
    input_.restore(in, [&](int64_t number, Item& item) {
      if (want == wanted.end() || want->first != number) return;
      hold(held_[want->second], std::move(item), number);
      ++want;
    });
    if (want != wanted.end()) StateReader::fail();
  }

 protected:
  bool produce(Item& out) override {
    while (!ended_ && static_cast<int64_t>(held_.size()) < buffer_) {
      check_cancelled(*pipeline_);
      Item item;
      if (!input_.pull(item)) {
        ended_ = true;
        break;
      }
      held_.emplace_back();
      hold(held_.back(), std::move(item), input_.pulled() - 1);
    }
    if (held_.empty()) return false;
    Held& chosen = held_[draw(key_, emitted_++, held_.size())];
    out = std::move(chosen.item);
    bytes_ -= chosen.bytes;
    pipeline_->budget.give(chosen.bytes);
    if (&chosen != &held_.back()) chosen = std::move(held_.back());
    held_.pop_back();
    return true;
  }

 private:
  struct Held {
    Item item;
    int64_t origin = 0;
    int64_t bytes = 0;
  };

  int64_t oldest() const {
    int64_t oldest = input_.pulled();
    for (const Held& h : held_) oldest = std::min(oldest, h.origin);
    return oldest;
  }
  void hold(Held& place, Item item, int64_t origin) {
    place.bytes = static_cast<int64_t>(bytes_of(item));
    place.item = std::move(item);
    place.origin = origin;
    bytes_ += place.bytes;
    pipeline_->budget.take(place.bytes);
    // Queues leave room for it; alone it must fit.
    if (bytes_ > pipeline_->budget.limit()) {
      throw make_error(
          Code::resource_exhausted,
          "[shuffle] a buffer of {} elements does not fit the byte budget of {}: {} elements hold {} bytes; "
          "use a smaller buffer_size, shuffle before elements grow (file names, indices), or raise "
          "DatasetOptions::byte_budget",
          buffer_, pipeline_->budget.limit(), held_.size(), bytes_);
    }
  }

  InputLog input_;
  std::shared_ptr<Pipeline> pipeline_;
  const int64_t most_;  // elements that the input can have
  const int64_t buffer_;
  const uint64_t key_;
  std::vector<Held> held_;
  uint64_t emitted_ = 0;
  int64_t bytes_ = 0;
  bool ended_ = false;
};

class ShuffleNode : public DatasetNode {
 public:
  ShuffleNode(NodePtr input, int64_t buffer, const ShuffleOptions& options)
      : DatasetNode({std::move(input)}),
        buffer_(buffer),
        anew_(options.reshuffle_each_iteration),
        seed_(options.seed ? mix(static_cast<uint64_t>(*options.seed), 0) | 1 : draw_seed()) {}
  std::string name() const override { return "Shuffle"; }
  std::string details() const override { return fmt::format("{}", buffer_); }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality(); }
  uint64_t seed() const override { return seed_; }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    if (input()->cardinality() < 0) return nullptr;
    const IndexedPtr view = input()->index(ctx);
    if (!view) return nullptr;
    auto made = std::make_shared<ShuffleView>(view, buffer_, key(ctx));
    made->wish = view->wish;
    return made;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    return std::make_unique<ShuffleIterator>(input()->iterate(ctx), input()->cardinality(), buffer_, key(ctx),
                                             ctx.pipeline);
  }

 private:
  uint64_t key(const Context& ctx) const { return mix(seed_in(ctx), anew_ ? ctx.epoch : 0); }

  int64_t buffer_;
  bool anew_;
  uint64_t seed_;
};

}  // namespace

NodePtr nodes::shuffle(NodePtr input, int64_t buffer_size, const ShuffleOptions& options) {
  if (buffer_size < 1) throw invalid_argument("[shuffle] buffer_size is {}, not positive", buffer_size);
  return std::make_shared<ShuffleNode>(std::move(input), buffer_size, options);
}

}  // namespace runnel::data
