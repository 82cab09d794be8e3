#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runnel/data/nodes.h"

namespace runnel::data {

// What datasets of all kinds have; Self is what they give back.
template <class Self>
class Transformations {
 public:
  // Stacks this many successive elements; the last batch may be smaller. SparseTensors of an element become one with a
  // dimension more, as wide as the widest of them, RaggedTensors one with a ragged dimension more.
  Self batch(int64_t batch_size, bool drop_remainder = false, SourceSite where = SourceSite::current()) const {
    return batch(batch_size, BatchOptions{.drop_remainder = drop_remainder}, where);
  }
  Self batch(int64_t batch_size, const BatchOptions& options, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::batch(node(), batch_size, options); });
  }
  // Random order, as from a buffer of that many elements. Over a source in memory it is a permutation and holds
  // nothing.
  Self shuffle(int64_t buffer_size, const ShuffleOptions& options = {},
               SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::shuffle(node(), buffer_size, options); });
  }
  Self shuffle(int64_t buffer_size, int64_t seed, SourceSite where = SourceSite::current()) const {
    return shuffle(buffer_size, ShuffleOptions{.seed = seed}, where);
  }
  Self repeat(int64_t count = -1, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::repeat(node(), count); });
  }
  Self take(int64_t count, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::take(node(), count); });
  }
  Self skip(int64_t count, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::skip(node(), count); });
  }
  // Every num_shards-th element, from number `index` on.
  Self shard(int64_t num_shards, int64_t index, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::shard(node(), num_shards, index); });
  }
  // Computes that many elements ahead of the consumer, on a thread of its own.
  Self prefetch(int64_t buffer_size, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::prefetch(node(), buffer_size); });
  }
  Self with_options(const DatasetOptions& options, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::with_options(node(), options); });
  }
  Self rebatch(int64_t batch_size, bool drop_remainder = false, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::rebatch(node(), batch_size, drop_remainder); });
  }
  // The rows of every element. Those of a RaggedTensor with one ragged dimension are tensors: ragged_batch joins them.
  Self unbatch(SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::unbatch(node()); });
  }
  // Stacks elements that differ in shape, filled up to the largest of the batch or to padded_shapes.
  Self padded_batch(int64_t batch_size, const PaddedBatchOptions& options = {},
                    SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::padded_batch(node(), batch_size, options); });
  }
  // Without elements that came before.
  Self unique(SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::unique(node()); });
  }
  // Goes on after an error, with the element behind it. `count` tells how many there were, `log` what they were.
  Self ignore_errors(const std::shared_ptr<std::atomic<int64_t>>& count = nullptr,
                     const std::function<void(const std::exception&)>& log = nullptr,
                     SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::ignore_errors(node(), count, log); });
  }
  // Keeps the elements of the first whole pass: in memory, or in a file, which appears only when it is complete. Its
  // folder must be there.
  Self cache(const std::string& path = "", Env& env = Env::posix(), SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::cache(node(), path, env); });
  }
  // A cache in a folder, which is made where it is missing, under a name made from the pipeline: another pipeline has
  // another file.
  Self snapshot(const std::string& dir, Env& env = Env::posix(), SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::snapshot(node(), dir, env); });
  }
  // Parts that share no element, now and in every later pass: {0.8, 0.2}. The order of the input is the same for all.
  std::vector<Self> split(const std::vector<double>& fractions, int64_t seed = 0,
                          SourceSite where = SourceSite::current()) const {
    std::vector<Self> parts;
    for (NodePtr& part : detail::called_at(where, [&] { return nodes::split(node(), fractions, seed); })) {
      parts.push_back(Self(std::move(part)));
    }
    return parts;
  }
  Self concatenate(const Self& other, SourceSite where = SourceSite::current()) const {
    return made(where, [&] { return nodes::concatenate(node(), other.node()); });
  }

  // Number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.
  int64_t cardinality(SourceSite where = SourceSite::current()) const {
    return detail::called_at(where, [&] { return nodes::cardinality(node()); });
  }
  // What elements look like. Of a map with a plain callable it is found by tracing one call.
  ElementSpec element_spec() const { return nodes::element_spec(node()); }
  // A table of the latest pass over this dataset, or over one that was made from it (as fit does): what each stage
  // does, how fast, what AUTOTUNE chose, which stage holds up the rest.
  std::string explain() const { return nodes::explain(node()); }
  template <class F>
  auto apply(F&& f) const {
    return std::forward<F>(f)(static_cast<const Self&>(*this));
  }
  // The description; an Error of a dataset that was default-constructed and never assigned.
  const NodePtr& node() const {
    if (!node_) detail::no_dataset();
    return node_;
  }

 protected:
  Transformations() = default;
  explicit Transformations(NodePtr node) : node_(std::move(node)) {}

 private:
  template <class F>
  static Self made(const SourceSite& where, const F& make) {
    return Self(detail::called_at(where, make));
  }

  NodePtr node_;
};

}  // namespace runnel::data
