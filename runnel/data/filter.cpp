// Stages that look at one element at a time: filter, take_while, scan, unique, ignore_errors, and what resampling
// needs.
#include <cmath>
#include <string>
#include <unordered_set>

#include "runnel/base/format.h"
#include "runnel/base/philox.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/data/runner.h"
#include "runnel/op/random_context.h"
#include "runnel/summary/kept_defaults.h"
#include "runnel/tensor/serialize.h"

namespace runnel::data {
namespace {

// One input, elements of the same kind, and a number for each.
class OneToOne : public IteratorNode {
 public:
  OneToOne(IteratorPtr input, std::shared_ptr<Pipeline> pipeline)
      : input_(std::move(input)), pipeline_(std::move(pipeline)) {}
  void save(StateWriter& out) const override {
    out.integer(static_cast<uint64_t>(at_));
    save_nested(*input_, out);
  }
  void restore(StateReader& in) override {
    at_ = in.count();
    restore_nested(*input_, in);
  }

 protected:
  bool pull(Item& out) {
    check_cancelled(*pipeline_);
    if (!input_->next(out)) return false;
    ++at_;
    return true;
  }
  IteratorPtr input_;
  std::shared_ptr<Pipeline> pipeline_;
  int64_t at_ = 0;
};

bool call_keyed(const Predicate& p, const char* who, const SourceSite& where, uint64_t key, int64_t number,
                const Item& item) {
  RandomContext random = RandomContext::of_element(mix(key, static_cast<uint64_t>(number)));
  const RandomScope scope(random);
  Item copy = item;
  return in_callable(who, where, [&] { return p(copy); });
}

class FilterNode : public DatasetNode {
 public:
  FilterNode(NodePtr input, Predicate p, bool stop, const char* name)
      : DatasetNode({std::move(input)}), p_(std::make_shared<Predicate>(std::move(p))), stop_(stop), name_(name) {}
  std::string name() const override { return name_; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality() == 0 ? 0 : UNKNOWN_CARDINALITY; }
  uint64_t seed() const override { return seed_; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : OneToOne {
      using OneToOne::OneToOne;
      std::shared_ptr<const Predicate> p;
      uint64_t key = 0;
      bool stop = false, stopped = false;
      bool produce(Item& out) override {
        while (!stopped && pull(out)) {
          if (call_keyed(*p, stop ? "take_while" : "filter", where_, key, at_ - 1, out)) return true;
          stopped = stop;
        }
        return false;
      }
      void save(StateWriter& out) const override {
        out.integer(stopped);
        OneToOne::save(out);
      }
      void restore(StateReader& in) override {
        stopped = in.integer() != 0;
        OneToOne::restore(in);
      }
    };
    auto it = std::make_unique<It>(input()->iterate(ctx), ctx.pipeline);
    it->p = p_;
    it->key = mix(seed_in(ctx), ctx.epoch);
    it->stop = stop_;
    return it;
  }

 private:
  std::shared_ptr<const Predicate> p_;
  bool stop_;
  const char* name_;
  uint64_t seed_ = draw_seed();
};

// The state is part of what is saved, as tensors.
class ScanNode : public DatasetNode {
 public:
  ScanNode(NodePtr input, Item initial, ScanFn f)
      : DatasetNode({std::move(input)}), initial_(std::move(initial)), f_(std::make_shared<ScanFn>(std::move(f))) {}
  std::string name() const override { return "Scan"; }
  ElementSpec element_spec() const override { return unknown_spec(f_->structure); }
  int64_t cardinality() const override { return input()->cardinality(); }
  uint64_t seed() const override { return seed_; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : OneToOne {
      using OneToOne::OneToOne;
      std::shared_ptr<const ScanFn> f;
      Item state;
      uint64_t key = 0;
      bool produce(Item& out) override {
        Item in;
        if (!pull(in)) return false;
        RandomContext random = RandomContext::of_element(mix(key, static_cast<uint64_t>(at_ - 1)));
        const RandomScope scope(random);
        Item next = state;  // an element that fails leaves the state as it is
        in_callable("scan", where_, [&] { f->call(next, in, out); });
        check_defined(next, "scan");
        check_defined(out, "scan");
        state = std::move(next);
        return true;
      }
      void save(StateWriter& out) const override {
        out.integer(state.tensors.size());
        for (const Tensor& t : state.tensors) out.text(serialize_tensor_proto(t));
        OneToOne::save(out);
      }
      void restore(StateReader& in) override {
        if (in.integer() != state.tensors.size()) StateReader::fail();
        for (Tensor& t : state.tensors) {
          const DType dtype = t.dtype();
          t = parse_tensor_proto(in.text());
          if (t.dtype() != dtype) StateReader::fail();
        }
        OneToOne::restore(in);
      }
    };
    auto it = std::make_unique<It>(input()->iterate(ctx), ctx.pipeline);
    it->f = f_;
    it->state = initial_;
    it->key = mix(seed_in(ctx), ctx.epoch);
    return it;
  }

 private:
  Item initial_;
  std::shared_ptr<const ScanFn> f_;
  uint64_t seed_ = draw_seed();
};

// What makes two elements equal, as bytes.
std::string bytes_as_key(const Item& item) {
  std::string key;
  for (const Tensor& t : item.tensors) key += serialize_tensor_proto(t);
  return key;
}

class UniqueNode : public DatasetNode {
 public:
  explicit UniqueNode(NodePtr input) : DatasetNode({std::move(input)}) {}
  std::string name() const override { return "Unique"; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality() == 0 ? 0 : UNKNOWN_CARDINALITY; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    // What was seen is not saved: a restored iterator reads its input again up to where it was.
    struct It : IteratorNode {
      NodePtr node;
      Context ctx;
      IteratorPtr input;
      std::unordered_set<std::string> seen;
      int64_t pulled = 0;
      bool produce(Item& out) override {
        while (input->next(out)) {
          check_cancelled(*ctx.pipeline);
          ++pulled;
          if (seen.insert(bytes_as_key(out)).second) return true;
        }
        return false;
      }
      void save(StateWriter& out) const override { out.integer(static_cast<uint64_t>(pulled)); }
      void restore(StateReader& in) override {
        const int64_t until = in.count();
        input = node->iterate(ctx);
        seen.clear();
        pulled = 0;
        for (Item item; pulled < until && input->next(item); ++pulled) seen.insert(bytes_as_key(item));
      }
    };
    auto it = std::make_unique<It>();
    it->node = input();
    it->ctx = ctx;
    it->input = input()->iterate(ctx);
    return it;
  }
};

class IgnoreErrorsNode : public DatasetNode {
 public:
  IgnoreErrorsNode(NodePtr input, std::shared_ptr<std::atomic<int64_t>> count,
                   std::function<void(const std::exception&)> log)
      : DatasetNode({std::move(input)}), count_(std::move(count)), log_(std::move(log)) {}
  std::string name() const override { return "IgnoreErrors"; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return UNKNOWN_CARDINALITY; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      IteratorPtr input;
      std::shared_ptr<Pipeline> pipeline;
      std::shared_ptr<std::atomic<int64_t>> count;
      std::function<void(const std::exception&)> log;
      bool produce(Item& out) override {
        while (true) {
          check_cancelled(*pipeline);
          try {
            return input->next(out);
          } catch (const std::exception& e) {
            const auto* error = dynamic_cast<const Error*>(&e);
            if (error != nullptr && error->code() == Code::cancelled) throw;
            if (count) count->fetch_add(1, std::memory_order_relaxed);
            if (stats_ != nullptr) stats_->skipped.fetch_add(1, std::memory_order_relaxed);
            if (log) log(e);
          }
        }
      }
      void save(StateWriter& out) const override { input->save(out); }
      void restore(StateReader& in) override { input->restore(in); }
    };
    auto it = std::make_unique<It>();
    it->input = input()->iterate(ctx);
    it->pipeline = ctx.pipeline;
    it->count = count_;
    it->log = log_;
    return it;
  }

 private:
  std::shared_ptr<std::atomic<int64_t>> count_;
  std::function<void(const std::exception&)> log_;
};

class ResampleNode : public DatasetNode {
 public:
  ResampleNode(NodePtr input, KeyFn class_of, std::vector<double> target, std::vector<double> initial, uint64_t seed)
      : DatasetNode({std::move(input)}),
        class_of_(std::make_shared<KeyFn>(std::move(class_of))),
        target_(std::move(target)),
        initial_(std::move(initial)),
        seed_(seed) {}
  std::string name() const override { return "RejectionResample"; }
  ElementSpec element_spec() const override {
    return ElementSpec::tuple({scalar_spec(DType::int64), input()->element_spec()});
  }
  int64_t cardinality() const override { return UNKNOWN_CARDINALITY; }
  uint64_t seed() const override { return seed_; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : OneToOne {
      using OneToOne::OneToOne;
      std::shared_ptr<const KeyFn> class_of;
      std::vector<double> target, initial;
      std::vector<int64_t> seen;  // of each class
      uint64_t key = 0;
      bool produce(Item& out) override {
        Item item;
        while (pull(item)) {
          Item copy = item;
          const int64_t c = in_callable("rejection_resample", where_, [&] { return (*class_of)(copy); });
          if (c < 0 || c >= static_cast<int64_t>(target.size())) {
            throw invalid_argument("[rejection_resample] an element is of class {}, but there are {} classes", c,
                                   target.size());
          }
          ++seen[static_cast<size_t>(c)];
          if (!accepted(static_cast<size_t>(c))) continue;
          out.tensors.assign(1, Tensor(c));
          for (Tensor& t : item.tensors) out.tensors.push_back(std::move(t));
          out.structure = structure_of(NestOf<Slot>::tuple({Slot{}, item.structure->nest}));
          return true;
        }
        return false;
      }
      // With probability proportional to target / actual, the largest of which is 1.
      bool accepted(size_t c) const {
        double largest = 0, total = 0;
        for (const int64_t n : seen) total += static_cast<double>(n);
        const auto ratio = [&](size_t k) {
          const double actual = initial.empty() ? static_cast<double>(seen[k]) / total : initial[k];
          return actual > 0 ? target[k] / actual : 0;
        };
        for (size_t k = 0; k < target.size(); ++k) largest = std::max(largest, ratio(k));
        Philox gen(key);
        gen.skip(static_cast<uint64_t>(at_));
        const auto words = gen();
        return largest > 0 && uniform_double(words[0], words[1]) < ratio(c) / largest;
      }
      void save(StateWriter& out) const override {
        for (const int64_t n : seen) out.integer(static_cast<uint64_t>(n));
        OneToOne::save(out);
      }
      void restore(StateReader& in) override {
        for (int64_t& n : seen) n = in.count();
        OneToOne::restore(in);
      }
    };
    auto it = std::make_unique<It>(input()->iterate(ctx), ctx.pipeline);
    it->class_of = class_of_;
    it->target = target_;
    it->initial = initial_;
    it->seen.assign(target_.size(), 0);
    it->key = mix(seed_in(ctx), ctx.epoch);
    return it;
  }

 private:
  std::shared_ptr<const KeyFn> class_of_;
  std::vector<double> target_, initial_;
  uint64_t seed_;
};

// Every pass sees the input in the same order: what is cut from it by position stays apart for ever.
class PinnedNode : public DatasetNode {
 public:
  explicit PinnedNode(NodePtr input) : DatasetNode({std::move(input)}) {}
  std::string name() const override { return "SameEachPass"; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality(); }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    const IndexedPtr view = input()->index(ctx.in_epoch(0));
    return view ? std::make_shared<SameView>(view) : nullptr;
  }
  IteratorPtr make_iterator(const Context& ctx) const override { return input()->iterate(ctx.in_epoch(0)); }
};

// Which part an element belongs to is drawn by its number, so that no element is in two.
class PartOfSplitNode : public DatasetNode {
 public:
  PartOfSplitNode(NodePtr input, uint64_t seed, double from, double to)
      : DatasetNode({std::move(input)}), seed_(seed), from_(from), to_(to) {}
  std::string name() const override { return "Split"; }
  std::string details() const override { return fmt::format("{:.6g}..{:.6g}", from_, to_); }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return UNKNOWN_CARDINALITY; }
  uint64_t seed() const override { return seed_; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : OneToOne {
      using OneToOne::OneToOne;
      uint64_t key = 0;
      double from = 0, to = 1;
      bool produce(Item& out) override {
        while (pull(out)) {
          Philox gen(key);
          gen.skip(static_cast<uint64_t>(at_ - 1));
          const auto words = gen();
          const double x = uniform_double(words[0], words[1]);
          if (from <= x && x < to) return true;
        }
        return false;
      }
    };
    auto it = std::make_unique<It>(input()->iterate(ctx), ctx.pipeline);
    it->key = seed_in(ctx);
    it->from = from_;
    it->to = to_;
    return it;
  }

 private:
  uint64_t seed_;
  double from_, to_;
};

}  // namespace

NodePtr nodes::filter(NodePtr input, Predicate p) {
  return std::make_shared<FilterNode>(std::move(input), summary::with_kept_defaults(std::move(p)), false, "Filter");
}
NodePtr nodes::take_while(NodePtr input, Predicate p) {
  return std::make_shared<FilterNode>(std::move(input), summary::with_kept_defaults(std::move(p)), true, "TakeWhile");
}
NodePtr nodes::scan(NodePtr input, Item initial, ScanFn f) {
  f.call = summary::with_kept_defaults(std::move(f.call));
  return std::make_shared<ScanNode>(std::move(input), std::move(initial), std::move(f));
}
NodePtr nodes::unique(NodePtr input) { return std::make_shared<UniqueNode>(std::move(input)); }
NodePtr nodes::ignore_errors(NodePtr input, std::shared_ptr<std::atomic<int64_t>> count,
                             std::function<void(const std::exception&)> log) {
  return std::make_shared<IgnoreErrorsNode>(std::move(input), std::move(count), std::move(log));
}
NodePtr nodes::rejection_resample(NodePtr input, KeyFn class_of, std::vector<double> target,
                                  std::vector<double> initial, std::optional<int64_t> seed) {
  if (target.empty() || (!initial.empty() && initial.size() != target.size())) {
    throw invalid_argument("[rejection_resample] {} target and {} initial shares", target.size(), initial.size());
  }
  return std::make_shared<ResampleNode>(std::move(input), summary::with_kept_defaults(std::move(class_of)),
                                        std::move(target), std::move(initial),
                                        seed ? mix(static_cast<uint64_t>(*seed), 0) | 1 : draw_seed());
}

std::vector<NodePtr> nodes::split(NodePtr input, const std::vector<double>& fractions, int64_t seed) {
  double total = 0;
  for (const double f : fractions) {
    if (!(f > 0)) throw invalid_argument("[split] a fraction is {}, not positive", f);
    total += f;
  }
  if (fractions.empty() || total > 1 + 1e-9) throw invalid_argument("[split] the fractions add up to {}", total);
  const NodePtr same = std::make_shared<PinnedNode>(std::move(input));
  const int64_t n = same->cardinality();
  if (n == INFINITE_CARDINALITY) throw invalid_argument("[split] the dataset is infinite");
  std::vector<NodePtr> parts;
  double from = 0;
  if (n == UNKNOWN_CARDINALITY) {
    const uint64_t key = mix(static_cast<uint64_t>(seed), 0) | 1;
    for (const double f : fractions) {
      parts.push_back(std::make_shared<PartOfSplitNode>(same, key, from, from + f));
      from += f;
    }
    return parts;
  }
  const NodePtr order = shuffle(same, std::max<int64_t>(n, 1), {.seed = seed, .reshuffle_each_iteration = false});
  for (const double f : fractions) {
    const auto begin = static_cast<int64_t>(std::llround(from * static_cast<double>(n)));
    const auto end = static_cast<int64_t>(std::llround((from + f) * static_cast<double>(n)));
    parts.push_back(take(skip(order, begin), end - begin));
    from += f;
  }
  return parts;
}

}  // namespace runnel::data
