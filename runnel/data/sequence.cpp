// Parts, repetitions and combinations of sequences: repeat, take, skip, shard, zip, concatenate.
#include <deque>

#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"

namespace runnel::data {
namespace {

uint64_t epoch_of_pass(uint64_t epoch, int64_t pass) {
  return pass == 0 ? epoch : mix(epoch, static_cast<uint64_t>(pass));
}

// Repeated more often than anybody can count is repeated without end. `rows` is not negative.
bool without_end(int64_t rows, int64_t count) {
  return rows > 0 && (count < 0 || (count > 0 && rows >= kEndless / count));
}

class RepeatView : public Indexed {
 public:
  RepeatView(NodePtr input, Context ctx, IndexedPtr first, int64_t count)
      : input_(std::move(input)), ctx_(std::move(ctx)), rows_(first->size()), passes_{{0, first}} {
    size_ = without_end(rows_, count) ? kEndless : rows_ * count;
    wish = first->wish;
  }
  int64_t size() const override { return size_; }

 protected:
  void compute(int64_t i, Item& out) const override { pass(i / rows_)->at(i % rows_, out); }
  void collect(std::span<const int64_t> indices, Item& out) const override {
    const int64_t p = indices.front() / rows_;
    for (const int64_t i : indices) {
      if (i / rows_ != p) return Indexed::collect(indices, out);
    }
    std::vector<int64_t> there;
    there.reserve(indices.size());
    for (const int64_t i : indices) there.push_back(i % rows_);
    pass(p)->gather(there, out);
  }

 private:
  // Threads work near each other: a few passes are kept.
  IndexedPtr pass(int64_t p) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, view] : passes_) {
      if (number == p) return view;
    }
    IndexedPtr made = input_->index(ctx_.in_epoch(epoch_of_pass(ctx_.epoch, p)));
    if (passes_.size() >= 3) passes_.pop_front();
    passes_.emplace_back(p, made);
    return made;
  }

  NodePtr input_;
  Context ctx_;
  int64_t rows_, size_;
  mutable std::mutex mutex_;
  mutable std::deque<std::pair<int64_t, IndexedPtr>> passes_;
};

class RepeatIterator : public IteratorNode {
 public:
  RepeatIterator(NodePtr input, Context ctx, int64_t count)
      : input_(std::move(input)), ctx_(std::move(ctx)), count_(count), it_(make(0)) {}
  void save(StateWriter& out) const override {
    out.integer(static_cast<uint64_t>(pass_));
    out.integer(empty_);
    save_nested(*it_, out);
  }
  void restore(StateReader& in) override {
    pass_ = in.count();
    empty_ = in.integer() != 0;
    it_ = make(pass_);
    restore_nested(*it_, in);
  }

 protected:
  bool produce(Item& out) override {
    while (count_ < 0 || pass_ < count_) {
      check_cancelled(*ctx_.pipeline);
      if (it_->next(out)) {
        empty_ = false;
        return true;
      }
      if (empty_) return false;  // the input has nothing: neither will it have later
      empty_ = true;
      ++pass_;
      if (count_ < 0 || pass_ < count_) it_ = make(pass_);
    }
    return false;
  }

 private:
  IteratorPtr make(int64_t pass) const { return input_->iterate(ctx_.in_epoch(epoch_of_pass(ctx_.epoch, pass))); }
  NodePtr input_;
  Context ctx_;
  int64_t count_;
  int64_t pass_ = 0;
  bool empty_ = true;
  IteratorPtr it_;
};

class RepeatNode : public DatasetNode {
 public:
  RepeatNode(NodePtr input, int64_t count) : DatasetNode({std::move(input)}), count_(count) {}
  std::string name() const override { return "Repeat"; }
  std::string details() const override { return count_ < 0 ? "" : fmt::format("{}", count_); }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override {
    const int64_t n = input()->cardinality();
    if (n == 0 || count_ == 0) return 0;
    if (n == INFINITE_CARDINALITY || count_ < 0) return INFINITE_CARDINALITY;
    if (n == UNKNOWN_CARDINALITY) return n;
    return without_end(n, count_) ? INFINITE_CARDINALITY : n * count_;
  }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    const IndexedPtr first = input()->index(ctx);
    if (!first) return nullptr;
    return std::make_shared<RepeatView>(input(), ctx, first, count_);
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    return std::make_unique<RepeatIterator>(input(), ctx, count_);
  }

 private:
  int64_t count_;
};

// Elements begin, begin + step, ... of the input.
class PartView : public Indexed {
 public:
  PartView(IndexedPtr input, int64_t begin, int64_t step, int64_t most)
      : input_(std::move(input)), begin_(begin), step_(step) {
    const int64_t n = input_->size();
    size_ = n == kEndless ? kEndless : groups_of(n - begin, step);
    size_ = std::min(size_, most);
    wish = input_->wish;
  }
  int64_t size() const override { return size_; }

 protected:
  void compute(int64_t i, Item& out) const override { input_->at(begin_ + i * step_, out); }
  void collect(std::span<const int64_t> indices, Item& out) const override {
    std::vector<int64_t> there;
    there.reserve(indices.size());
    for (const int64_t i : indices) there.push_back(begin_ + i * step_);
    input_->gather(there, out);
  }

 private:
  IndexedPtr input_;
  int64_t begin_, step_, size_;
};

class PartIterator : public IteratorNode {
 public:
  PartIterator(IteratorPtr input, int64_t begin, int64_t step, int64_t most, std::shared_ptr<Pipeline> pipeline)
      : input_(std::move(input)), pipeline_(std::move(pipeline)), begin_(begin), step_(step), most_(most) {}
  void save(StateWriter& out) const override {
    out.integer(static_cast<uint64_t>(given_));
    out.integer(static_cast<uint64_t>(at_));
    save_nested(*input_, out);
  }
  void restore(StateReader& in) override {
    given_ = in.count();
    at_ = in.count();
    restore_nested(*input_, in);
  }

 protected:
  bool produce(Item& out) override {
    if (given_ >= most_) return false;
    if (given_ > 0 && step_ > (INT64_MAX - begin_) / given_) return false;  // behind the last number there is
    const int64_t wanted = begin_ + given_ * step_;
    while (input_->next(out)) {
      if (at_++ == wanted) {
        ++given_;
        return true;
      }
      check_cancelled(*pipeline_);
    }
    return false;
  }

 private:
  IteratorPtr input_;
  std::shared_ptr<Pipeline> pipeline_;
  int64_t begin_, step_, most_;
  int64_t given_ = 0, at_ = 0;
};

class PartNode : public DatasetNode {
 public:
  PartNode(NodePtr input, const char* name, std::string details, int64_t begin, int64_t step, int64_t most)
      : DatasetNode({std::move(input)}),
        name_(name),
        details_(std::move(details)),
        begin_(begin),
        step_(step),
        most_(most) {}
  std::string name() const override { return name_; }
  std::string details() const override { return details_; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override {
    const int64_t n = input()->cardinality();
    if (most_ == 0) return 0;
    if (n == UNKNOWN_CARDINALITY) return n;
    if (n == INFINITE_CARDINALITY) return most_ == INT64_MAX ? n : most_;
    return std::min(most_, groups_of(n - begin_, step_));
  }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    const IndexedPtr view = input()->index(ctx);
    return view ? std::make_shared<PartView>(view, begin_, step_, most_) : nullptr;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    return std::make_unique<PartIterator>(input()->iterate(ctx), begin_, step_, most_, ctx.pipeline);
  }

 private:
  const char* name_;
  std::string details_;
  int64_t begin_, step_, most_;
};

class ZipNode : public DatasetNode {
 public:
  explicit ZipNode(std::vector<NodePtr> inputs) : DatasetNode(std::move(inputs)) {}
  std::string name() const override { return "Zip"; }
  ElementSpec element_spec() const override {
    std::vector<ElementSpec> parts;
    for (const NodePtr& in : inputs()) parts.push_back(in->element_spec());
    return ElementSpec::tuple(std::move(parts));
  }
  int64_t cardinality() const override {
    int64_t least = INFINITE_CARDINALITY;
    for (const NodePtr& in : inputs()) {
      const int64_t n = in->cardinality();
      if (n == 0) return 0;
      if (n == UNKNOWN_CARDINALITY || least == UNKNOWN_CARDINALITY) {
        least = UNKNOWN_CARDINALITY;
      } else if (n >= 0) {
        least = least < 0 ? n : std::min(least, n);
      }
    }
    return least;
  }

  // The structure of a tuple of these; kept from call to call.
  struct Joiner {
    std::vector<const Structure*> parts;
    const Structure* whole = nullptr;
    void join(std::vector<Item>& items, Item& out) {
      bool same = whole != nullptr && parts.size() == items.size();
      for (size_t k = 0; same && k < items.size(); ++k) same = parts[k] == items[k].structure;
      if (!same) {
        parts.clear();
        std::vector<NestOf<Slot>> nests;
        for (const Item& item : items) {
          parts.push_back(item.structure);
          nests.push_back(item.structure->nest);
        }
        whole = structure_of(NestOf<Slot>::tuple(std::move(nests)));
      }
      out.structure = whole;
      out.tensors.clear();
      for (Item& item : items) {
        for (Tensor& t : item.tensors) out.tensors.push_back(std::move(t));
      }
    }
  };

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    struct View : Indexed {
      std::vector<IndexedPtr> inputs;
      int64_t rows = kEndless;
      int64_t size() const override { return rows; }
      void compute(int64_t i, Item& out) const override {
        std::vector<Item> items(inputs.size());
        for (size_t k = 0; k < inputs.size(); ++k) inputs[k]->at(i, items[k]);
        join(items, out);
      }
      void collect(std::span<const int64_t> indices, Item& out) const override {
        std::vector<Item> items(inputs.size());
        for (size_t k = 0; k < inputs.size(); ++k) inputs[k]->gather(indices, items[k]);
        join(items, out);
      }
      static void join(std::vector<Item>& items, Item& out) {
        thread_local Joiner joiner;
        joiner.join(items, out);
      }
    };
    auto view = std::make_shared<View>();
    for (const NodePtr& in : inputs()) {
      view->inputs.push_back(in->index(ctx));
      if (!view->inputs.back()) return nullptr;
      view->rows = std::min(view->rows, view->inputs.back()->size());
      view->wish = view->wish.with(view->inputs.back()->wish);
    }
    return view;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      std::vector<IteratorPtr> inputs;
      Joiner joiner;
      bool produce(Item& out) override {
        std::vector<Item> items(inputs.size());
        for (size_t k = 0; k < inputs.size(); ++k) {
          if (!inputs[k]->next(items[k])) return false;
        }
        joiner.join(items, out);
        return true;
      }
      void save(StateWriter& out) const override {
        for (const IteratorPtr& in : inputs) save_nested(*in, out);
      }
      void restore(StateReader& in) override {
        for (const IteratorPtr& it : inputs) restore_nested(*it, in);
      }
    };
    auto it = std::make_unique<It>();
    for (const NodePtr& in : inputs()) it->inputs.push_back(in->iterate(ctx));
    return it;
  }
};

class ConcatenateNode : public DatasetNode {
 public:
  ConcatenateNode(NodePtr a, NodePtr b)
      : DatasetNode({std::move(a), std::move(b)}),
        spec_(relaxed(inputs()[0]->element_spec(), inputs()[1]->element_spec(), "concatenate")) {}
  std::string name() const override { return "Concatenate"; }
  ElementSpec element_spec() const override { return spec_; }
  int64_t cardinality() const override {
    const int64_t a = inputs()[0]->cardinality(), b = inputs()[1]->cardinality();
    if (a == INFINITE_CARDINALITY || b == INFINITE_CARDINALITY) return INFINITE_CARDINALITY;
    return a < 0 || b < 0 ? UNKNOWN_CARDINALITY : a + b;
  }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    struct View : Indexed {
      IndexedPtr a, b;
      int64_t size() const override { return a->size() >= kEndless - b->size() ? kEndless : a->size() + b->size(); }
      void compute(int64_t i, Item& out) const override {
        if (i < a->size()) return a->at(i, out);
        b->at(i - a->size(), out);
      }
      void collect(std::span<const int64_t> indices, Item& out) const override {
        bool first = true, second = true;
        for (const int64_t i : indices) (i < a->size() ? second : first) = false;
        if (first) return a->gather(indices, out);
        if (!second) return Indexed::collect(indices, out);
        std::vector<int64_t> there;
        for (const int64_t i : indices) there.push_back(i - a->size());
        b->gather(there, out);
      }
    };
    auto view = std::make_shared<View>();
    view->a = inputs()[0]->index(ctx);
    view->b = inputs()[1]->index(ctx);
    if (!view->a || !view->b) return nullptr;
    view->wish = view->a->wish.with(view->b->wish);
    return view;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      NodePtr a, b;
      Context ctx;
      IteratorPtr it;
      bool second = false;
      bool produce(Item& out) override {
        if (it->next(out)) return true;
        if (second) return false;
        second = true;
        it = b->iterate(ctx);
        return it->next(out);
      }
      void save(StateWriter& out) const override {
        out.integer(second);
        save_nested(*it, out);
      }
      void restore(StateReader& in) override {
        second = in.integer() != 0;
        it = (second ? b : a)->iterate(ctx);
        restore_nested(*it, in);
      }
    };
    auto it = std::make_unique<It>();
    it->a = inputs()[0];
    it->b = inputs()[1];
    it->ctx = ctx;
    it->it = it->a->iterate(ctx);
    return it;
  }

 private:
  ElementSpec spec_;
};

}  // namespace

NodePtr nodes::repeat(NodePtr input, int64_t count) { return std::make_shared<RepeatNode>(std::move(input), count); }
NodePtr nodes::take(NodePtr input, int64_t count) {
  return std::make_shared<PartNode>(std::move(input), "Take", fmt::format("{}", count), 0, 1,
                                    count < 0 ? INT64_MAX : count);
}
NodePtr nodes::skip(NodePtr input, int64_t count) {
  return std::make_shared<PartNode>(std::move(input), "Skip", fmt::format("{}", count), count < 0 ? kEndless : count, 1,
                                    count < 0 ? 0 : INT64_MAX);
}
NodePtr nodes::shard(NodePtr input, int64_t num_shards, int64_t index) {
  if (num_shards < 1 || index < 0 || index >= num_shards) {
    throw invalid_argument("[shard] there is no shard {} of {}", index, num_shards);
  }
  return std::make_shared<PartNode>(std::move(input), "Shard", fmt::format("{}/{}", index, num_shards), index,
                                    num_shards, INT64_MAX);
}
NodePtr nodes::zip(std::vector<NodePtr> inputs) {
  if (inputs.empty()) throw invalid_argument("[zip] there is no dataset to zip");
  return std::make_shared<ZipNode>(std::move(inputs));
}
NodePtr nodes::concatenate(NodePtr first, NodePtr second) {
  return std::make_shared<ConcatenateNode>(std::move(first), std::move(second));
}

}  // namespace runnel::data
