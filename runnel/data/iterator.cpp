#include "runnel/data/iterator.h"

#include <atomic>
#include <optional>
#include <system_error>
#include <thread>

#include "runnel/base/crc32c.h"
#include "runnel/base/flush_denormals.h"
#include "runnel/base/format.h"
#include "runnel/base/moved_from.h"
#include "runnel/base/profile_scope.h"
#include "runnel/base/stack.h"
#include "runnel/data/nested.h"
#include "runnel/data/next_pass.h"
#include "runnel/data/node.h"
#include "runnel/data/register.h"
#include "runnel/data/runner.h"
#include "runnel/data/traced_pass.h"
#include "runnel/function/tracing_turn.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/tensor/handle.h"
#include "runnel/tensor/profile_step.h"
#include "runnel/tensor/trackable.h"

namespace runnel::data {
namespace {

constexpr std::string_view kMagic = "RNLIT1";

void collect_options(const DatasetNode& node, DatasetOptions& options) {
  for (const NodePtr& in : node.inputs()) collect_options(*in, options);
  if (const DatasetOptions* own = node.options()) {
    if (own->threads > 0) options.threads = own->threads;
    if (own->byte_budget > 0) options.byte_budget = own->byte_budget;
    if (own->deterministic) options.deterministic = own->deterministic;
  }
}

void collect_seeds(const DatasetNode& node, std::vector<std::pair<const DatasetNode*, uint64_t>>& seeds) {
  if (const uint64_t seed = node.seed()) seeds.emplace_back(&node, seed);
  for (const NodePtr& in : node.inputs()) collect_seeds(*in, seeds);
}

uint32_t checksum(std::string_view text) { return crc32c(text.data(), text.size()); }
uint32_t fingerprint_of(const DatasetNode& node) { return checksum(node.fingerprint()); }

}  // namespace

namespace {

// Stages run as plain code: no tape records them, no trace takes their ops, no layer's call is around them. They
// compute alike on this thread and on those that work ahead, which know no writer of summaries and no scope of names.
// Another thread may be waiting for the iterator meanwhile.
template <class F>
auto apart(const F& f) {
  const FlushDenormals flush;
  const ContextScope<&ThreadContext::training, &ThreadContext::layer_call, &ThreadContext::masks,
                     &ThreadContext::destination, &ThreadContext::call_site, &ThreadContext::name_scope,
                     &ThreadContext::summary, &ThreadContext::worker>
      nobodys_guest(false, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, true);
  std::optional<OutsideTrace> outside;
  if (current_interceptor() != nullptr || current_recorder() != nullptr) outside.emplace();
  return f();
}

}  // namespace

namespace {

// What runs: the stages of one pass and what they share. Stopped and joined when it goes.
struct Pass {
  uint64_t epoch = 0;
  std::vector<uint64_t> seeds;  // in the order of collect_seeds
  std::shared_ptr<Pipeline> pipeline;
  IteratorPtr root;

  Pass() = default;
  Pass(Pass&&) = default;
  Pass& operator=(Pass&& other) noexcept {
    stop();
    epoch = other.epoch;
    seeds = std::move(other.seeds);
    pipeline = std::move(other.pipeline);
    root = std::move(other.root);
    return *this;
  }
  ~Pass() { stop(); }

  void start(const NodePtr& node) {
    DatasetOptions options;
    collect_options(*node, options);
    pipeline = std::make_shared<Pipeline>(options);
    std::vector<std::pair<const DatasetNode*, uint64_t>> own;
    collect_seeds(*node, own);
    if (seeds.empty()) {
      for (const auto& [n, seed] : own) seeds.push_back(seed);
    }
    if (seeds.size() != own.size())
      throw Error(Code::data_loss, "[restore] the saved state has other seeds than the dataset");
    for (size_t i = 0; i < own.size(); ++i) pipeline->seeds[own[i].first] = seeds[i];
    root = node->iterate({pipeline, epoch, -1});
  }
  void stop() noexcept {
    const function_detail::WaitsForWorkers waits;  // they are joined
    if (pipeline) pipeline->cancelled.store(true, std::memory_order_relaxed);
    root.reset();
  }
};

}  // namespace

struct AnyIterator::Impl : Object, Trackable {
  Impl() = default;
  ~Impl() override;
  std::string describe() const override { return "iterator of " + node->name(); }
  std::string save();
  void restore(std::string_view state);
  void begin_next_pass();
  void replace_pass(Pass fresh);
  StateReader checked(std::string_view state) const;
  std::vector<SavableValue> savable_values() override;
  bool holds_weights() const override { return false; }

  NodePtr node;
  Pass pass;
  std::mutex mutex;            // of the two below: ops of a graph may run on any thread
  std::optional<Item> peeked;  // asked for by a loop's condition, not yet handed out
  bool ended = false;
  std::atomic<std::thread::id> reader;         // the thread that makes an element now
  std::atomic<const Pipeline*> runs{nullptr};  // pass.pipeline

  // The stages below run on this thread, or this thread works for them: what they wait for would wait for them.
  void require_outside() const {
    if (reader.load(std::memory_order_relaxed) != std::this_thread::get_id() &&
        (working_for() == nullptr || working_for() != runs.load(std::memory_order_relaxed))) {
      return;
    }
    throw Error(Code::failed_precondition,
                "[data] the iterator is read inside its own pipeline: a callable of a stage runs while the iterator "
                "makes an element, and cannot ask it for another or move it. Make an iterator of its own for it");
  }
  // The next element of the stages. The mutex is held.
  bool make(Item& out) {
    struct Reading {
      explicit Reading(Impl& of) : of(of) { of.reader.store(std::this_thread::get_id(), std::memory_order_relaxed); }
      ~Reading() { of.reader.store(std::thread::id(), std::memory_order_relaxed); }
      Reading(const Reading&) = delete;
      Reading& operator=(const Reading&) = delete;
      Impl& of;
    };
    const Reading reading(*this);
    const profile::Span wait(profile::Kind::input_wait, "iterator", profile::current_step());
    return apart([&] { return pass.root->next(out); });
  }

  void tell_latest() const { tell_latest(*node); }
  // The datasets this one was made from too: users hold those, where fit adds stages of its own.
  void tell_latest(const DatasetNode& to) const {
    {
      const std::lock_guard lock(to.last_mutex);
      to.last = pass.pipeline;
    }
    for (const NodePtr& in : to.inputs()) tell_latest(*in);
  }
  // For loops of graphs, which ask whether there is an element before they take it.
  bool has_next() {
    require_outside();
    const function_detail::WaitsForWorkers waits;  // for the lock too
    const std::lock_guard lock(mutex);
    if (peeked) return true;
    if (ended) return false;
    Item item;
    if (!make(item)) {
      ended = true;
      return false;
    }
    peeked = std::move(item);
    return true;
  }
  bool take(Item& out) {
    require_outside();
    const function_detail::WaitsForWorkers waits;  // for the lock too
    const std::lock_guard lock(mutex);
    if (!peeked) return make(out);
    out = std::move(*peeked);
    peeked.reset();
    return true;
  }
};

// Callables of stages may hold iterators whose stages hold others, as deep as the program says: what this stack has no
// room for ends on another one.
AnyIterator::Impl::~Impl() {
  if (stack_has_room()) return;
  const function_detail::WaitsForWorkers waits;
  try {
    std::thread([this] {
      pass = Pass();
      node.reset();
    }).join();
  } catch (...) {  // no thread or no memory for one is to be had: here, then
  }
}

AnyIterator::AnyIterator(NodePtr node) : impl_(std::make_shared<Impl>()) {
  impl_->node = std::move(node);
  impl_->pass.epoch = impl_->node->iterations.fetch_add(1, std::memory_order_relaxed);
  apart([&] { impl_->pass.start(impl_->node); });
  impl_->runs = impl_->pass.pipeline.get();
  impl_->tell_latest();
  handle_ = Tensor::empty(DType::resource, {});
  handle_.mutable_data<ResourceHandle>()->object = impl_;
}

const std::shared_ptr<AnyIterator::Impl>& AnyIterator::impl(const SourceSite& where) const {
  if (!impl_) throw_moved_from("Iterator", where);
  return impl_;
}

bool AnyIterator::next(Item& out) {
  const std::shared_ptr<Impl> alive = impl();  // a callable may drop this object while it runs
  return alive->take(out);
}

const Tensor& AnyIterator::handle() const {
  impl();
  return handle_;
}

std::optional<Nest> AnyIterator::next() {
  Item item;
  if (!next(item)) return std::nullopt;
  return to_nest(item);
}

std::string AnyIterator::save() const { return impl()->save(); }
void AnyIterator::restore(std::string_view state) { impl()->restore(state); }

std::vector<SavableValue> AnyIterator::Impl::savable_values() {
  const auto check = [this](const std::vector<Tensor>& saved) {
    if (saved.at(0).dtype() != DType::string || saved.at(0).num_elements() != 1) {
      // Nothing that fits badly: there is nothing to be done with it, and the iterator is left as it is.
      throw make_error(Code::unimplemented, "the saved state of the {} is {}{}, which is none of this library's",
                       describe(), dtype_name(saved[0].dtype()), saved[0].shape().str());
    }
    checked(saved[0].data<Bytes>()[0]);
  };
  return {{.name = "ITERATOR",
           .suffixes = {"_STATE"},
           .get = [this] { return std::vector<Tensor>{Tensor(save())}; },
           .check = check,
           .set = [this](const std::vector<Tensor>& saved) { restore(saved.at(0).data<Bytes>()[0]); }}};
}

std::string AnyIterator::Impl::save() {
  StateWriter out;
  out.text(kMagic);
  require_outside();
  const function_detail::WaitsForWorkers waits;  // for the lock
  const std::lock_guard lock(mutex);
  out.integer(fingerprint_of(*node));
  out.integer(pass.epoch);
  out.integer(pass.seeds.size());
  for (const uint64_t seed : pass.seeds) out.integer(seed);
  apart([&] { save_nested(*pass.root, out); });
  std::string bytes = out.take();
  append_fixed32(bytes, checksum(bytes));
  return bytes;
}

// At what comes after the fingerprint. An Error unless the state is whole and of this pipeline.
StateReader AnyIterator::Impl::checked(std::string_view state) const {
  if (state.size() < 4 ||
      checksum(state.substr(0, state.size() - 4)) != load_fixed32(state.data() + state.size() - 4)) {
    throw Error(Code::data_loss, "[restore] the bytes are no saved state of an iterator, or damaged");
  }
  StateReader in(state.substr(0, state.size() - 4));
  if (in.text() != kMagic) throw Error(Code::data_loss, "[restore] the bytes are no saved state of an iterator");
  if (in.integer() != fingerprint_of(*node)) {
    throw make_error(Code::failed_precondition, "[restore] the state was saved of another pipeline than {}",
                     node->fingerprint());
  }
  return in;
}

void AnyIterator::Impl::restore(std::string_view state) {
  require_outside();
  StateReader in = checked(state);
  apart([&] {
    Pass fresh;
    fresh.epoch = in.integer();
    const int64_t seeds = in.count(static_cast<int64_t>(pass.seeds.size()));
    for (int64_t k = 0; k < seeds; ++k) fresh.seeds.push_back(in.integer());
    fresh.start(node);
    restore_nested(*fresh.root, in);
    replace_pass(std::move(fresh));
  });
}

void AnyIterator::Impl::begin_next_pass() {
  require_outside();
  apart([&] {
    Pass fresh;
    fresh.epoch = pass.epoch + 1;
    fresh.seeds = pass.seeds;
    fresh.start(node);
    replace_pass(std::move(fresh));
  });
}

void AnyIterator::Impl::replace_pass(Pass fresh) {
  {
    const std::lock_guard lock(mutex);
    peeked.reset();
    ended = false;
    pass = std::move(fresh);
    runs = pass.pipeline.get();
  }
  tell_latest();
}

std::string AnyIterator::explain() const { return impl()->pass.pipeline->explain(); }
const Pipeline& AnyIterator::pipeline() const { return *impl()->pass.pipeline; }

namespace {

struct GetNextAttrs {
  std::vector<DType> output_types;
  std::vector<PartialShape> output_shapes;
  static constexpr auto fields() {
    constexpr AttrRule some{.required = true, .minimum = 1};
    return field_list(field("output_types", &GetNextAttrs::output_types, some),
                      field("output_shapes", &GetNextAttrs::output_shapes, some));
  }
};

AnyIterator::Impl& iterator_of(const Tensor& handle) {
  auto* impl = referred_as<AnyIterator::Impl>(handle);
  if (impl == nullptr) throw invalid_argument("the handle refers to no iterator");
  return *impl;
}

// An element as outputs of an op of the graph that is being traced.
void get_next_traced(const Tensor& handle, const DatasetNode& node, Item& out) {
  const ElementSpec spec = node.element_spec();
  GetNextAttrs attrs;
  for (const TensorSpec& s : nest::flatten(spec)) {
    if (s.dtype == DType::invalid) {
      throw make_error(
          Code::failed_precondition,
          "[data] a function that is traced must know the dtypes of elements, and those of {} are {}: state them "
          "(from_generator takes a spec), or map with callables that can be traced",
          node.name(), str(spec));
    }
    attrs.output_types.push_back(s.dtype);
    attrs.output_shapes.push_back(s.shape);
  }
  static const Op<GetNextAttrs> op("IteratorGetNext");
  out.structure = structure_of(spec);
  out.tensors = op.many({handle}, attrs);
}

}  // namespace

void begin_next_pass(const AnyIterator& iterator) { iterator_of(iterator.handle()).begin_next_pass(); }

void AnyIterator::get_next(Item& out, SourceSite where) const {
  const std::shared_ptr<Impl> alive = impl(where);
  composed(where, [&] {
    if (current_interceptor() != nullptr) return get_next_traced(handle_, *alive->node, out);
    if (!alive->take(out)) throw Error(Code::out_of_range, "[get_next] end of sequence");
  });
}

TracedPass::TracedPass(const NodePtr& node, SourceSite where) : Loop("for", where), node_(node) {
  if (!is_traced()) return;
  if (node->cardinality() == INFINITE_CARDINALITY) {
    composed(where, [] {
      throw Error(Code::invalid_argument,
                  "[for] the dataset never ends, and neither would the loop in the function: take(n) gives its first n "
                  "elements; get_next() of an iterator made outside gives the next one at each call");
    });
  }
  static const Op op("_DatasetIterator");
  iterator_ = op({to_variant(node)});
}

bool TracedPass::more() {
  return test([&] {
    static const Op op("_IteratorHasNext");
    return op({iterator_});
  });
}

void TracedPass::get(Item& out) const { get_next_traced(iterator_, *node_, out); }

void register_data_iterators(Registry& r) {
  r.define("_DatasetIterator")
      .in("dataset", DType::variant)
      .out("handle", DType::resource)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) { c.forward(0, AnyIterator(from_variant(c.in(0))).handle()); })
      .forwards()
      .runs_code()
      .stateful()
      .doc("Begins a pass over a dataset.");
  r.define("_IteratorHasNext")
      .in("iterator", DType::resource)
      .out("has_next", DType::bool_)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) { *c.out<bool>() = iterator_of(c.in(0)).has_next(); })
      .runs_code()
      .stateful()
      .doc("Is there another element? It is computed, and kept for IteratorGetNext.");
  r.define<GetNextAttrs>("IteratorGetNext")
      .in("iterator", DType::resource)
      .out_any_list("components", "output_types")
      .shape([](InferContext& c, const GetNextAttrs& a) {
        for (int i = 0; i < c.num_outputs(); ++i) {
          const auto k = static_cast<size_t>(i);
          c.output(i, k < a.output_shapes.size() ? a.output_shapes[k] : PartialShape::unknown());
        }
      })
      .cpu([](KernelContext& c, const GetNextAttrs& a) {
        Item item;
        if (!iterator_of(c.in(0)).take(item)) throw Error(Code::out_of_range, "end of sequence");
        if (item.tensors.size() != a.output_types.size()) {
          throw invalid_argument("an element has {} tensors, not {}", item.tensors.size(), a.output_types.size());
        }
        for (size_t k = 0; k < item.tensors.size(); ++k) {
          const Tensor& t = item.tensors[k];
          const bool fits = t.dtype() == a.output_types[k] &&
                            (k >= a.output_shapes.size() || a.output_shapes[k].compatible_with(t.shape()));
          if (!fits) {
            throw invalid_argument("tensor {} of an element is {}{}, not {}{}", k, dtype_name(t.dtype()),
                                   t.shape().str(), dtype_name(a.output_types[k]), a.output_shapes[k].str());
          }
          c.forward(static_cast<int>(k), item.tensors[k]);
        }
      })
      .forwards()
      .runs_code()
      .stateful()
      .doc("The next element of an iterator; at the end an error.");
}

}  // namespace runnel::data
