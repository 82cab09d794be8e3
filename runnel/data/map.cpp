#include <mutex>
#include <optional>

#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/data/runner.h"
#include "runnel/function/concrete_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/random_context.h"
#include "runnel/summary/kept_defaults.h"

namespace runnel::data {
namespace {

// What random ops draw depends on the stage's seed, the pass and the element's number alone, whatever thread calls.
void call_keyed(const ItemFn& f, const SourceSite& where, uint64_t key, int64_t i, Item& in, Item& out) {
  RandomContext random = RandomContext::of_element(mix(key, static_cast<uint64_t>(i)));
  const RandomScope scope(random);
  in_callable("map", where, [&] { f.call(in, out); });
  check_defined(out, "map");
}

class MapView : public Indexed {
 public:
  MapView(IndexedPtr input, std::shared_ptr<const ItemFn> f, uint64_t key)
      : input_(std::move(input)), f_(std::move(f)), key_(key) {}
  int64_t size() const override { return input_->size(); }

 protected:
  void compute(int64_t i, Item& out) const override {
    Item in;
    input_->at(i, in);
    call_keyed(*f_, where, key_, i, in, out);
  }
  void collect(std::span<const int64_t> indices, Item& out) const override {
    if (!f_->vectorises || known_not_.load(std::memory_order_relaxed)) return Indexed::collect(indices, out);
    Item in;
    input_->gather(indices, in);
    if (!vectorises(in)) {
      known_not_.store(true, std::memory_order_relaxed);
      return Indexed::collect(indices, out);
    }
    in_stage(where, [&] { call_keyed(*f_, where, key_, indices.front(), in, out); });
  }

 private:
  // Is asked once for elements of one kind, which all are in nearly every dataset.
  bool vectorises(const Item& batch) const {
    const auto same = [&](const std::vector<TensorSpec>& known) {
      if (known.size() != batch.tensors.size()) return false;
      for (size_t k = 0; k < known.size(); ++k) {
        const Tensor& t = batch.tensors[k];
        const Dims& dims = t.shape().dims();
        if (known[k].dtype != t.dtype() || known[k].shape.dims().size() + 1 != dims.size() ||
            !std::equal(dims.begin() + 1, dims.end(), known[k].shape.begin())) {
          return false;
        }
      }
      return true;
    };
    {
      const std::lock_guard lock(mutex_);
      if (asked_ && same(element_)) return answer_;
    }
    std::vector<TensorSpec> element;
    for (const Tensor& t : batch.tensors) {
      const Dims& dims = t.shape().dims();
      element.push_back({PartialShape(std::span<const int64_t>(dims.begin() + 1, dims.size() - 1)), t.dtype(), ""});
    }
    const bool answer = f_->vectorises(element);  // traces the function: not under a lock
    const std::lock_guard lock(mutex_);
    element_ = std::move(element);
    answer_ = answer;
    asked_ = true;
    return answer;
  }

  IndexedPtr input_;
  std::shared_ptr<const ItemFn> f_;
  uint64_t key_;
  mutable std::atomic<bool> known_not_{false};
  mutable std::mutex mutex_;
  mutable std::vector<TensorSpec> element_;
  mutable bool asked_ = false, answer_ = false;
};

class MapIterator : public IteratorNode {
 public:
  MapIterator(IteratorPtr input, std::shared_ptr<const ItemFn> f, uint64_t key)
      : input_(std::move(input)), f_(std::move(f)), key_(key) {}
  void save(StateWriter& out) const override {
    out.integer(static_cast<uint64_t>(at_));
    save_nested(*input_, out);
  }
  void restore(StateReader& in) override {
    at_ = in.count();
    restore_nested(*input_, in);
  }

 protected:
  bool produce(Item& out) override {
    if (!input_->next(item_)) return false;
    call_keyed(*f_, where_, key_, at_++, item_, out);
    return true;
  }

 private:
  IteratorPtr input_;
  std::shared_ptr<const ItemFn> f_;
  uint64_t key_;
  int64_t at_ = 0;
  Item item_;
};

class MapJob : public RunnerJob {
 public:
  MapJob(IteratorPtr input, std::shared_ptr<const ItemFn> f, uint64_t key, const SourceSite& where)
      : input_(std::move(input)), f_(std::move(f)), key_(key), where_(where) {}
  bool claim(Block& block, int64_t want) override {
    block.position = at_;
    for (int64_t k = 0; k < want; ++k) {
      Item item;
      std::exception_ptr error;
      try {
        if (!input_->next(item)) break;
        ++at_;
      } catch (...) {
        error = std::current_exception();
      }
      // An error is no element of the input: the calls after it keep their numbers.
      block.inputs.push_back(std::move(item));
      block.results.emplace_back().error = error;
      block.numbers.push_back(error ? -1 : at_ - 1);
      if (error) break;
    }
    return !block.results.empty();
  }
  void run(Block& block, size_t i, Item& out) override {
    call_keyed(*f_, where_, key_, block.numbers[i], block.inputs[i], out);
  }
  void skip(int64_t n) override {
    for (Item item; n > 0; --n) {
      try {
        if (!input_->next(item)) return;
        ++at_;
      } catch (const Error&) {
        // It was delivered before the state was saved.
      }
    }
  }
  void save(StateWriter& out) const override {
    out.integer(static_cast<uint64_t>(at_));
    save_nested(*input_, out);
  }
  void restore(StateReader& in) override {
    at_ = in.count();
    restore_nested(*input_, in);
  }

 private:
  IteratorPtr input_;
  std::shared_ptr<const ItemFn> f_;
  uint64_t key_;
  SourceSite where_;
  int64_t at_ = 0;
};

class MapNode : public DatasetNode {
 public:
  MapNode(NodePtr input, ItemFn f, const MapOptions& options)
      : DatasetNode({std::move(input)}), f_(std::make_shared<ItemFn>(std::move(f))), options_(options) {}
  std::string name() const override { return options_.num_parallel_calls == 0 ? "Map" : "ParallelMap"; }
  ElementSpec element_spec() const override {
    {
      const std::lock_guard lock(spec_mutex_);
      if (spec_) return *spec_;
    }
    ElementSpec spec = result_spec(f_->call, input()->element_spec(), f_->structure);  // calls it: not under a lock
    const std::lock_guard lock(spec_mutex_);
    if (!spec_) spec_ = std::move(spec);
    return *spec_;
  }
  int64_t cardinality() const override { return input()->cardinality(); }
  uint64_t seed() const override { return seed_; }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    const IndexedPtr view = input()->index(ctx);
    if (!view) return nullptr;
    auto made = std::make_shared<MapView>(view, f_, key(ctx));
    made->wish = view->wish.with({.parallel = options_.num_parallel_calls,
                                  .serial = options_.num_parallel_calls == 0 && !f_->thread_safe,
                                  .ordered = ordered(ctx)});
    return made;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    if (options_.num_parallel_calls != 0) return make_iterator_ahead(ctx, 0);
    return std::make_unique<MapIterator>(input()->iterate(ctx), f_, key(ctx));
  }
  IteratorPtr make_iterator_ahead(const Context& ctx, int depth) const override {
    if (options_.num_parallel_calls == 0) return nullptr;
    return std::make_unique<Runner>(ctx, std::make_unique<MapJob>(input()->iterate(ctx), f_, key(ctx), where()),
                                    options_.num_parallel_calls,
                                    depth > 0 ? depth + std::max(options_.num_parallel_calls, 0) : depth, ordered(ctx),
                                    ctx.pipeline->stage_by_id(ctx.stage));
  }

 private:
  uint64_t key(const Context& ctx) const { return mix(seed_in(ctx), ctx.epoch); }
  bool ordered(const Context& ctx) const {
    return options_.deterministic.value_or(ctx.pipeline->options.deterministic.value_or(true));
  }

  std::shared_ptr<const ItemFn> f_;
  MapOptions options_;
  uint64_t seed_ = draw_seed();
  mutable std::mutex spec_mutex_;
  mutable std::optional<ElementSpec> spec_;
};

}  // namespace

ElementSpec unknown_spec(const Structure* structure) {
  const TensorSpec unknown{PartialShape::unknown(), DType::invalid, ""};
  if (structure == nullptr) return unknown;
  auto next = [&] { return unknown; };
  return nest::detail::fill<TensorSpec>(structure->nest, next);
}

ElementSpec result_spec(const std::function<void(Item& in, Item& out)>& f, const ElementSpec& in,
                        const Structure* structure) {
  Item item, out;
  item.structure = structure_of(in);
  const std::vector<TensorSpec> leaves = nest::flatten(in);
  for (const TensorSpec& s : leaves) {
    if (s.dtype == DType::invalid || s.dtype == DType::variant || s.dtype == DType::resource) {
      return unknown_spec(structure);
    }
  }
  const OutsideTrace outside;
  try {
    Tracer tracer("element_spec");
    tracer.allow_variables = false;
    for (const TensorSpec& s : leaves) item.tensors.push_back(tracer.add_parameter(s.dtype, s.shape));
    tracer.open();
    f(item, out);
    check_defined(out, "map");
    tracer.close();
    return spec_of(out);
  } catch (const std::exception&) {
    // It looks at values, which only running has: nothing is known before.
    return unknown_spec(structure);
  }
}

bool is_elementwise(const ConcreteFunction& f) {
  const Graph& graph = f.graph();
  // Which values have a row per element of the batch. Such a value has the rank of the result of the op it goes into,
  // so that its new first dimension stands first there too; others are aligned at the last dimension and stay as they
  // are.
  std::vector<bool> batched(static_cast<size_t>(graph.num_nodes()));
  for (size_t k = 0; k < f.num_parameters(); ++k) batched[static_cast<size_t>(graph.inputs()[k]->id)] = true;
  for (const auto& node : graph.nodes()) {
    if (node->is("_Arg")) continue;
    bool any = false;
    for (const NodeOutput& in : node->inputs) any = any || batched[static_cast<size_t>(in.node->id)];
    if (node->op->stateful || !functions_of(*node).empty() || !node->control_inputs.empty()) return false;
    if (!any) continue;
    const bool plain = node->op->elementwise || node->is("Cast") || node->is("Identity");
    if (!plain || node->num_outputs() != 1 || !node->shape().has_rank()) return false;
    for (const NodeOutput& in : node->inputs) {
      const PartialShape& s = in.node->shape(in.index);
      if (!s.has_rank()) return false;
      if (batched[static_cast<size_t>(in.node->id)] ? s.rank() != node->shape().rank()
                                                    : s.rank() > node->shape().rank()) {
        return false;
      }
    }
    batched[static_cast<size_t>(node->id)] = true;
  }
  for (const NodeOutput& out : graph.outputs()) {
    if (!batched[static_cast<size_t>(out.node->id)]) return false;
  }
  return !graph.outputs().empty();
}

NodePtr nodes::map(NodePtr input, ItemFn f, const MapOptions& options) {
  check_parallel("map", "num_parallel_calls", options.num_parallel_calls);
  const summary::KeptDefaults kept;
  f.call = summary::with_kept_defaults(kept, std::move(f.call));
  f.vectorises = summary::with_kept_defaults(kept, std::move(f.vectorises));  // it traces the function
  return std::make_shared<MapNode>(std::move(input), std::move(f), options);
}

}  // namespace runnel::data
