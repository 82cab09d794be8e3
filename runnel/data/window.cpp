// Elements grouped into datasets: windows of successive ones, and groups by a key.
#include <algorithm>
#include <deque>
#include <map>
#include <string_view>

#include "runnel/base/format.h"
#include "runnel/data/input_log.h"
#include "runnel/data/nested.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/op/random_context.h"
#include "runnel/summary/kept_defaults.h"

namespace runnel::data {
namespace {

// The parts of a tuple, each as a dataset of its own; any other element as one dataset.
void emit_window(const std::vector<Item>& items, Item& out) {
  const NestOf<Slot>& nest = items[0].structure->nest;
  out.tensors.clear();
  if (nest.kind() != NestKind::tuple) {
    out.structure = dataset_structure();
    out.tensors.push_back(to_variant(list_node(items, spec_of(items[0]))));
    return;
  }
  size_t at = 0;
  std::vector<NestOf<Slot>> parts;
  for (size_t p = 0; p < nest.size(); ++p) {
    const Structure* structure = structure_of(nest.items()[p]);
    std::vector<Item> column;
    for (const Item& item : items) {
      const auto begin = item.tensors.begin() + static_cast<ptrdiff_t>(at);
      column.push_back({structure, std::vector<Tensor>(begin, begin + static_cast<ptrdiff_t>(structure->leaves))});
    }
    at += structure->leaves;
    ElementSpec part = spec_of(column[0]);
    out.tensors.push_back(to_variant(list_node(std::move(column), std::move(part))));
    parts.push_back(dataset_structure()->nest);
  }
  out.structure = structure_of(NestOf<Slot>::tuple(std::move(parts)));
}

class WindowNode : public DatasetNode {
 public:
  WindowNode(NodePtr input, int64_t size, int64_t shift, int64_t stride, bool drop)
      : DatasetNode({std::move(input)}), size_(size), shift_(shift), stride_(stride), drop_(drop) {}
  std::string name() const override { return "Window"; }
  std::string details() const override { return fmt::format("{}, {}, {}", size_, shift_, stride_); }
  ElementSpec element_spec() const override {
    const ElementSpec in = input()->element_spec();
    const auto one = [] {
      auto next = [] { return scalar_spec(DType::variant); };
      return nest::detail::fill<TensorSpec>(dataset_structure()->nest, next);
    };
    if (in.kind() != NestKind::tuple) return one();
    std::vector<ElementSpec> parts(in.size(), one());
    return ElementSpec::tuple(std::move(parts));
  }
  int64_t cardinality() const override {
    const int64_t n = input()->cardinality();
    if (n < 0) return n;
    const int64_t span = (size_ - 1) * stride_ + 1;
    if (drop_) return n < span ? 0 : (n - span) / shift_ + 1;
    return groups_of(n, shift_);
  }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      int64_t size, shift, stride;
      bool drop, ended = false;
      std::deque<Item> held;  // successive elements of the input, from number first on
      int64_t first = 0;
      InputLog input;
      It(IteratorPtr in, const WindowNode& n)
          : size(n.size_), shift(n.shift_), stride(n.stride_), drop(n.drop_), input(std::move(in), 16, [this] {
              return first;
            }) {}
      bool produce(Item& out) override {
        // Elements between windows that lie apart are skipped.
        while (!ended && input.pulled() < first) {
          Item item;
          ended = !input.pull(item);
        }
        const int64_t span = (size - 1) * stride + 1;
        while (!ended && static_cast<int64_t>(held.size()) < span) {
          Item item;
          if (input.pull(item)) {
            held.push_back(std::move(item));
          } else {
            ended = true;
          }
        }
        if (held.empty() || (drop && static_cast<int64_t>(held.size()) < span)) return false;
        std::vector<Item> items;
        for (int64_t k = 0; k < span && k < static_cast<int64_t>(held.size()); k += stride) {
          items.push_back(held[static_cast<size_t>(k)]);
        }
        emit_window(items, out);
        for (int64_t k = 0; k < shift && !held.empty(); ++k) held.pop_front();
        first += shift;
        return true;
      }
      void save(StateWriter& out) const override {
        out.integer(static_cast<uint64_t>(first));
        out.integer(ended);
        input.save(out);
      }
      void restore(StateReader& in) override {
        first = in.count();
        ended = in.integer() != 0;
        held.clear();
        input.restore(in, [&](int64_t number, Item& item) {
          if (number >= first) held.push_back(std::move(item));
        });
      }
    };
    return std::make_unique<It>(input()->iterate(ctx), *this);
  }

 private:
  int64_t size_, shift_, stride_;
  bool drop_;
};

class GroupNode : public DatasetNode {
 public:
  GroupNode(NodePtr input, KeyFn key, GroupFn reduce, std::function<int64_t(int64_t)> size, const Structure* structure,
            const char* name)
      : DatasetNode({std::move(input)}),
        key_(std::make_shared<KeyFn>(std::move(key))),
        reduce_(std::make_shared<GroupFn>(std::move(reduce))),
        size_(std::make_shared<std::function<int64_t(int64_t)>>(std::move(size))),
        structure_(structure),
        name_(name) {}
  std::string name() const override { return name_; }
  ElementSpec element_spec() const override { return unknown_spec(structure_); }
  int64_t cardinality() const override { return input()->cardinality() == 0 ? 0 : UNKNOWN_CARDINALITY; }
  uint64_t seed() const override { return seed_; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct Group {
      std::vector<Item> items;
      std::vector<int64_t> numbers;
    };
    struct It : IteratorNode {
      Context ctx;
      std::shared_ptr<const KeyFn> key;
      std::shared_ptr<const GroupFn> reduce;
      std::shared_ptr<const std::function<int64_t(int64_t)>> size;
      const char* name = "";
      uint64_t seed = 0;
      std::map<int64_t, Group> groups;
      // The group that is being given out: kept until its dataset ends.
      int64_t current_key = 0;
      Group current;
      IteratorPtr it;
      int64_t made = 0;
      bool ended = false;
      InputLog input;
      It(const Context& ctx, IteratorPtr in) : ctx(ctx), input(std::move(in), 16, [this] { return oldest(); }) {}
      int64_t oldest() const {
        int64_t at = input.pulled();
        for (const auto& [k, g] : groups) at = g.numbers.empty() ? at : std::min(at, g.numbers.front());
        for (const int64_t n : current.numbers) at = std::min(at, n);
        return at;
      }
      int64_t key_of(const Item& item) const {
        Item copy = item;
        return in_callable(name, where_, [&] { return (*key)(copy); });
      }
      void begin(int64_t k, Group group) {
        current_key = k;
        current = std::move(group);
        RandomContext random = RandomContext::of_element(mix(seed, static_cast<uint64_t>(made)));
        const RandomScope scope(random);
        const NodePtr group_items = list_node(current.items, spec_of(current.items[0]));
        it = in_callable(name, where_, [&] { return (*reduce)(k, group_items); })->iterate(ctx);
        ++made;
      }
      bool produce(Item& out) override {
        while (true) {
          check_cancelled(*ctx.pipeline);
          if (it) {
            if (it->next(out)) return true;
            it.reset();
            current = Group();
          }
          Item item;
          if (!ended && input.pull(item)) {
            const int64_t k = key_of(item);
            Group& g = groups[k];
            g.items.push_back(std::move(item));
            g.numbers.push_back(input.pulled() - 1);
            const int64_t full = (*size)(k);
            if (full < 1) throw invalid_argument("[group_by_window] the window of key {} has size {}", k, full);
            if (static_cast<int64_t>(g.items.size()) >= full) {
              Group whole = std::move(g);
              groups.erase(k);
              begin(k, std::move(whole));
            }
            continue;
          }
          ended = true;
          if (groups.empty()) return false;
          auto first = groups.begin();
          const int64_t k = first->first;
          Group whole = std::move(first->second);
          groups.erase(first);
          begin(k, std::move(whole));
        }
      }
      void save(StateWriter& out) const override {
        out.integer(static_cast<uint64_t>(made));
        out.integer(ended);
        const auto numbers = [&](const Group& g) {
          out.integer(g.numbers.size());
          int64_t last = 0;
          for (const int64_t n : g.numbers) out.integer(static_cast<uint64_t>(n - std::exchange(last, n)));
        };
        out.integer(it != nullptr);
        if (it) {
          out.integer(zigzag_encode(current_key));
          numbers(current);
          save_nested(*it, out);
        }
        out.integer(groups.size());
        for (const auto& [k, g] : groups) {
          out.integer(zigzag_encode(k));
          numbers(g);
        }
        input.save(out);
      }
      void restore(StateReader& in) override {
        made = in.count();
        ended = in.integer() != 0;
        it.reset();
        current = Group();
        groups.clear();
        std::map<int64_t, Group*> where;
        const auto numbers = [&](Group& g) {
          int64_t last = 0;
          for (int64_t n = in.count(); n > 0; --n) {
            last += in.count(StateReader::kMost - last);
            g.numbers.push_back(last);
          }
        };
        Group running;
        std::string_view running_state;
        const bool is_running = in.integer() != 0;
        if (is_running) {
          current_key = zigzag_decode(in.integer());
          numbers(running);
          running_state = in.text();
        }
        for (int64_t n = in.count(); n > 0; --n) numbers(groups[zigzag_decode(in.integer())]);
        for (const int64_t n : running.numbers) where[n] = &running;
        for (auto& [k, g] : groups) {
          for (const int64_t n : g.numbers) where[n] = &g;
        }
        input.restore(in, [&](int64_t number, Item& item) {
          if (const auto found = where.find(number); found != where.end())
            found->second->items.push_back(std::move(item));
        });
        const auto incomplete = [](const Group& g) { return g.items.empty() || g.items.size() != g.numbers.size(); };
        for (const auto& [k, g] : groups) {
          if (incomplete(g)) StateReader::fail();
        }
        if (is_running) {
          if (incomplete(running)) StateReader::fail();
          --made;
          begin(current_key, std::move(running));
          StateReader state(running_state);
          it->restore(state);
        }
      }
    };
    auto it = std::make_unique<It>(ctx, input()->iterate(ctx));
    it->key = key_;
    it->reduce = reduce_;
    it->size = size_;
    it->name = std::string_view(name_) == "GroupByWindow" ? "group_by_window" : "bucket_by_sequence_length";
    it->seed = mix(seed_in(ctx), ctx.epoch);
    return it;
  }

 private:
  std::shared_ptr<const KeyFn> key_;
  std::shared_ptr<const GroupFn> reduce_;
  std::shared_ptr<const std::function<int64_t(int64_t)>> size_;
  const Structure* structure_;
  const char* name_;
  uint64_t seed_ = draw_seed();
};

}  // namespace

NodePtr nodes::window(NodePtr input, int64_t size, const WindowOptions& options) {
  const int64_t shift = options.shift == 0 ? size : options.shift;
  if (size < 1 || shift < 1 || options.stride < 1) {
    throw invalid_argument("[window] size {}, shift {} and stride {} must be positive", size, shift, options.stride);
  }
  return std::make_shared<WindowNode>(std::move(input), size, shift, options.stride, options.drop_remainder);
}

NodePtr nodes::group_by_window(NodePtr input, KeyFn key, GroupFn reduce, std::function<int64_t(int64_t)> size,
                               const Structure* structure) {
  const summary::KeptDefaults kept;
  return std::make_shared<GroupNode>(std::move(input), summary::with_kept_defaults(kept, std::move(key)),
                                     summary::with_kept_defaults(kept, std::move(reduce)), std::move(size), structure,
                                     "GroupByWindow");
}

NodePtr nodes::bucket_by_sequence_length(NodePtr input, KeyFn length, std::vector<int64_t> boundaries,
                                         const std::vector<int64_t>& batch_sizes, const PaddedBatchOptions& options,
                                         bool pad_to_boundary) {
  if (batch_sizes.size() != boundaries.size() + 1) {
    throw invalid_argument("[bucket_by_sequence_length] {} boundaries need {} batch sizes, not {}", boundaries.size(),
                           boundaries.size() + 1, batch_sizes.size());
  }
  if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
    throw invalid_argument("[bucket_by_sequence_length] the boundaries do not rise");
  }
  length = summary::with_kept_defaults(std::move(length));
  const auto bucket = [length = std::move(length), boundaries](Item& item) {
    return std::upper_bound(boundaries.begin(), boundaries.end(), length(item)) - boundaries.begin();
  };
  const auto reduce = [batch_sizes, options, boundaries, pad_to_boundary](int64_t k, NodePtr group) {
    if (k < 0 || k >= static_cast<int64_t>(batch_sizes.size())) StateReader::fail();  // no bucket of ours
    PaddedBatchOptions mine = options;
    if (pad_to_boundary) {
      if (k == static_cast<int64_t>(boundaries.size())) {
        throw invalid_argument(
            "[bucket_by_sequence_length] an element is not shorter than the last boundary, {}, to which "
            "pad_to_bucket_boundary could pad it",
            boundaries.back());
      }
      if (mine.padded_shapes.empty()) {
        for (const TensorSpec& s : nest::flatten(group->element_spec()))
          mine.padded_shapes.push_back(PartialShape::unknown_dims(s.shape.rank()));
      }
      for (PartialShape& shape : mine.padded_shapes) {
        Dims dims = shape.dims();
        for (int64_t& d : dims) d = d == kUnknownDim ? boundaries[static_cast<size_t>(k)] - 1 : d;
        shape = PartialShape(dims);
      }
    }
    return padded_batch(std::move(group), batch_sizes[static_cast<size_t>(k)], mine);
  };
  return std::make_shared<GroupNode>(
      std::move(input), bucket, reduce, [batch_sizes](int64_t k) { return batch_sizes[static_cast<size_t>(k)]; },
      nullptr, "BucketBySequenceLength");
}

}  // namespace runnel::data
