#include "runnel/data/node.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "runnel/base/format.h"
#include "runnel/base/stack.h"
#include "runnel/data/nodes.h"
#include "runnel/data/rows.h"
#include "runnel/data/runner.h"
#include "runnel/data/stage_event.h"
#include "runnel/op/composed.h"
#include "runnel/op/random_context.h"
#include "runnel/tensor/output_destination.h"

namespace runnel::data {

void detail::run_as_call(const SourceSite& where, FunctionRef<void()> call) { composed(where, call); }

void detail::no_dataset() {
  throw Error(Code::failed_precondition,
              "[Dataset] this dataset was default-constructed: assign one to it before it is used");
}

void rethrow_from_stage(const Error& e, const SourceSite& where) {
  // Errors without a frame are the user's own.
  const auto named = [](const ErrorFrame& frame) { return frame.where.known(); };
  if (!where.known() || e.frames().empty() || std::ranges::any_of(e.frames(), named)) throw;
  std::vector<ErrorFrame> frames = e.frames();
  frames.front().where = where;
  throw Error(e.code(), e.what() + where.at(), std::move(frames));
}

void rethrow_from_callable(const Error& e, const char* name, const SourceSite& where) {
  // A text like "[map] ..." gets the line from rethrow_from_stage; an op on the line of the stage says enough.
  const auto named = [](const ErrorFrame& frame) { return frame.where.known(); };
  const auto here = [&](const ErrorFrame& frame) {
    return frame.where.line == where.line && std::string_view(frame.where.file) == where.file;
  };
  const std::vector<ErrorFrame>& frames = e.frames();
  const bool names_a_line = std::ranges::any_of(frames, named);
  if (!where.known() || (!frames.empty() && !names_a_line) || std::ranges::any_of(frames, here)) throw;
  throw e.reworded(
      fmt::format("{}\n  in the callable of {}, a stage made at {}:{}", e.what(), name, where.file, where.line));
}

void check_defined(const Item& item, const char* who, const char* from) {
  for (size_t k = 0; k < item.tensors.size(); ++k) {
    if (item.tensors[k].defined()) continue;
    const std::string path = nest::paths(item.structure->nest)[k];
    throw invalid_argument("[{}] {} a Tensor that refers to nothing{}: give every Tensor a value", who, from,
                           path.empty() ? "" : " at " + path);
  }
}

bool IteratorNode::next(Item& out) {
  return in_stage(where_, [&] { return timed_next(out); });
}

bool IteratorNode::profiled_next(Item& out) {
  StageEvent event(*stats_, where_);
  const int64_t start = now_ns();
  const bool got = produce(out);
  if (!got) return false;
  event.made(out);
  stats_->elements.fetch_add(1, std::memory_order_relaxed);
  stats_->samples.fetch_add(1, std::memory_order_relaxed);
  stats_->sampled_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
  return true;
}

bool IteratorNode::timed_next(Item& out) {
  if (profile::recording() && stats_ != nullptr && !hands_over()) [[unlikely]]
    return profiled_next(out);
  if (stats_ == nullptr || !sampled()) {
    const bool got = produce(out);
    if (got && stats_ != nullptr) stats_->elements.fetch_add(1, std::memory_order_relaxed);
    return got;
  }
  const int64_t start = now_ns();
  const bool got = produce(out);
  if (got) {
    stats_->elements.fetch_add(1, std::memory_order_relaxed);
    stats_->samples.fetch_add(1, std::memory_order_relaxed);
    stats_->sampled_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
  }
  return got;
}

int64_t IteratorNode::next_batch(int64_t n, Item& out, std::exception_ptr& error) {
  const int64_t start = stats_ != nullptr ? now_ns() : 0;
  std::optional<StageEvent> event;
  if (profile::recording() && stats_ != nullptr && !hands_over()) event.emplace(*stats_, where_);
  const int64_t got = produce_batch(n, out, error);
  if (event && got > 0) event->made(out, got);
  if (stats_ != nullptr) {
    stats_->elements.fetch_add(got, std::memory_order_relaxed);
    stats_->samples.fetch_add(got, std::memory_order_relaxed);
    stats_->sampled_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
  }
  return got;
}

int64_t IteratorNode::produce_batch(int64_t n, Item& out, std::exception_ptr& error) {
  if (n > kRoomyBatch) return produce_all(n, out, error);
  Stacker stacker(n);
  Item item;
  try {
    while (stacker.count() < n) {
      {
        const OutputDestination into_the_batch(stacker.room());
        if (!in_stage(where_, [&] { return produce(item); })) break;
      }
      stacker.add(item);
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (stacker.count() > 0) stacker.finish(out);
  return stacker.count();
}

int64_t IteratorNode::produce_all(int64_t n, Item& out, std::exception_ptr& error) {
  std::vector<Item> items;
  try {
    while (static_cast<int64_t>(items.size()) < n) {
      Item one;
      if (!in_stage(where_, [&] { return produce(one); })) break;
      items.push_back(std::move(one));
    }
  } catch (...) {
    error = std::current_exception();
  }
  Stacker stacker(static_cast<int64_t>(items.size()));
  try {
    for (const Item& one : items) stacker.add(one);
  } catch (...) {
    error = std::current_exception();
  }
  if (stacker.count() > 0) stacker.finish(out);
  return stacker.count();
}

Wish Wish::with(const Wish& other) const {
  const auto larger = [](int a, int b) { return a == AUTOTUNE || b == AUTOTUNE ? AUTOTUNE : std::max(a, b); };
  return {larger(parallel, other.parallel), larger(depth, other.depth), serial || other.serial,
          ordered && other.ordered};
}

namespace {

// Counts every call and times one in sixteen.
template <class F>
void timed(StageStats* stats, const SourceSite& where, int64_t elements, const Item& out, const F& call) {
  if (stats == nullptr) return call();
  std::optional<StageEvent> event;
  if (profile::recording()) [[unlikely]]
    event.emplace(*stats, where);
  stats->elements.fetch_add(elements, std::memory_order_relaxed);
  if (!sampled() && !event) return call();
  const int64_t start = now_ns();
  call();
  if (event) event->made(out, elements);
  stats->samples.fetch_add(elements, std::memory_order_relaxed);
  stats->sampled_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
}

}  // namespace

void Indexed::at(int64_t i, Item& out) const {
  timed(stats, where, 1, out, [&] { in_stage(where, [&] { compute(i, out); }); });
}

void Indexed::gather(std::span<const int64_t> indices, Item& out) const {
  timed(stats, where, static_cast<int64_t>(indices.size()), out, [&] { collect(indices, out); });
}

void Indexed::collect(std::span<const int64_t> indices, Item& out) const {
  Stacker stacker(static_cast<int64_t>(indices.size()));
  Item item;
  for (const int64_t i : indices) {
    {
      const OutputDestination into_the_batch(stacker.room());
      in_stage(where, [&] { compute(i, item); });
    }
    stacker.add(item);
  }
  stacker.finish(out);
}

namespace {

// Every stage begins here: those of a long pipeline, and those that callables of stages begin.
void require_stack_for(const DatasetNode& node) {
  if (stack_has_room()) return;
  throw make_error(
      Code::resource_exhausted,
      "[{}] the datasets inside one another have used up the stack: a dataset whose callable reads another "
      "of its own kind must come to an end",
      node.name());
}

}  // namespace

std::shared_ptr<Indexed> DatasetNode::index(const Context& ctx) const {
  require_stack_for(*this);
  StageStats& stats = ctx.pipeline->stage(ctx.stage, name(), details());
  std::shared_ptr<Indexed> view = make_indexed(ctx.in_stage(stats));
  if (view) {
    view->stats = &stats;
    view->where = where_;
  }
  return view;
}

IteratorPtr DatasetNode::iterate(const Context& ctx) const {
  require_stack_for(*this);
  StageStats& stats = ctx.pipeline->stage(ctx.stage, name(), details());
  const Context inner = ctx.in_stage(stats);
  if (std::shared_ptr<Indexed> view = make_indexed(inner)) {
    view->where = where_;
    return iterate_indexed(inner, view, stats);
  }
  IteratorPtr it = make_iterator(inner);
  it->set_stats(&stats);
  it->set_where(where_);
  return it;
}

IteratorPtr DatasetNode::iterate_ahead(const Context& ctx, int depth) const {
  require_stack_for(*this);
  StageStats& stats = ctx.pipeline->stage(ctx.stage, name(), details());
  IteratorPtr it = make_iterator_ahead(ctx.in_stage(stats), depth);
  if (it) {
    it->set_stats(&stats);
    it->set_where(where_);
  }
  return it;
}

DatasetNode::DatasetNode(std::vector<NodePtr> inputs)
    : inputs_(std::move(inputs)),
      where_(thread_context().call_site != nullptr ? *thread_context().call_site : SourceSite()) {}

uint64_t DatasetNode::seed_in(const Context& ctx) const {
  const auto found = ctx.pipeline->seeds.find(this);
  return found != ctx.pipeline->seeds.end() ? found->second : seed();
}

std::string DatasetNode::fingerprint() const {
  std::string text = name() + "(" + details();
  for (const NodePtr& in : inputs_) text += "," + in->fingerprint();
  return text + ")";
}

IteratorPtr IndexedNode::make_iterator(const Context&) const {
  throw make_error(Code::internal, "[data] {} has no iterator of its own", name());
}

Tensor Stacker::room() const {
  if (count_ == 0) return {};
  const auto largest = std::max_element(made_.tensors.begin(), made_.tensors.end(),
                                        [](const Tensor& a, const Tensor& b) { return a.num_bytes() < b.num_bytes(); });
  if (largest == made_.tensors.end() || !is_plain(largest->dtype())) return {};
  const size_t row = largest->num_bytes() / static_cast<size_t>(rows_);
  return row >= kWorthPlacing && row % kAlignment == 0 ? row_of(*largest, count_) : Tensor();
}

// A value that the function of a map made on its way, kept by somebody, may stand where the result is to go: then the
// rows move to memory of their own.
void Stacker::leave_shared_memory(Tensor& rows) const {
  if (rows.impl()->buffer->ref_count() == 1) return;
  const Tensor fresh = Tensor::empty(rows.dtype(), rows.shape());
  const size_t done = rows.num_bytes() / static_cast<size_t>(rows_) * static_cast<size_t>(count_);
  std::memcpy(fresh.mutable_data<char>(), rows.raw(), done);
  rows = fresh;
}

namespace {

// What a user does so that a row can be stacked on rows of this dtype and shape.
const char* advice_to_stack(const Tensor& row, DType dtype, const Shape& shape) {
  if (row.dtype() != dtype) return "give all elements one dtype, with cast() in a map before the batch";
  if (row.rank() != shape.rank()) return "give all elements one rank, with reshape() in a map before the batch";
  return "padded_batch fills them up to one shape, ragged_batch keeps rows of differing lengths";
}

}  // namespace

void Stacker::add(const Item& item) {
  if (count_ == 0) {
    made_.structure = item.structure;
    made_.tensors.clear();
    for (const Tensor& t : item.tensors) {
      if (!item.structure->plain) break;
      Dims dims;
      dims.push_back(rows_);
      for (const int64_t d : t.shape()) dims.push_back(d);
      made_.tensors.push_back(Tensor::empty(t.dtype(), Shape(dims)));
    }
  }
  if (item.structure != made_.structure) detail::wrong_structure(made_.structure, item.structure);
  if (!item.structure->plain) {
    kept_.push_back(item);
    ++count_;
    return;
  }
  for (size_t k = 0; k < item.tensors.size(); ++k) {
    const Tensor from = item.tensors[k].to_host();
    const Tensor& to = made_.tensors[k];
    const Dims& whole = to.shape().dims();
    const bool fits = from.dtype() == to.dtype() && from.shape().dims().size() + 1 == whole.size() &&
                      std::equal(from.shape().begin(), from.shape().end(), whole.begin() + 1);
    if (!fits) {
      const Shape first(std::span<const int64_t>(whole.begin() + 1, whole.size() - 1));
      const std::string path = path_ + made_.structure->parts[k].path;
      throw invalid_argument("[batch] element {} of the batch is {}{}{}, the ones before it are {}{}: {}", count_,
                             dtype_name(from.dtype()), from.shape().str(), path.empty() ? "" : " at " + path,
                             dtype_name(to.dtype()), first.str(), advice_to_stack(from, to.dtype(), first));
    }
    const int64_t n = from.num_elements();
    if (is_plain(from.dtype())) {
      const size_t bytes = from.num_bytes(), at = static_cast<size_t>(count_) * bytes;
      if (from.raw() == static_cast<const char*>(to.raw()) + at) continue;  // was made there
      if (bytes >= kWorthPlacing) leave_shared_memory(made_.tensors[k]);
      std::memcpy(made_.tensors[k].mutable_data<char>() + at, from.raw(), bytes);
    } else if (from.dtype() == DType::string) {
      std::copy(from.data<Bytes>(), from.data<Bytes>() + n, to.mutable_data<Bytes>() + count_ * n);
    } else if (from.dtype() == DType::variant) {
      std::copy(from.data<VariantValue>(), from.data<VariantValue>() + n, to.mutable_data<VariantValue>() + count_ * n);
    } else {
      std::copy(from.data<ResourceHandle>(), from.data<ResourceHandle>() + n,
                to.mutable_data<ResourceHandle>() + count_ * n);
    }
  }
  ++count_;
}

void Stacker::finish(Item& out) {
  if (!kept_.empty()) return stack(kept_, out);
  if (count_ < rows_) {
    for (Tensor& t : made_.tensors) t = t.rows(0, count_);
  }
  out = std::move(made_);
}

Tensor row_of(const Tensor& t, int64_t i) {
  const Dims& dims = t.shape().dims();
  const Shape shape(std::span<const int64_t>(dims.begin() + 1, dims.size() - 1));
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * dtype_size(t.dtype());
  const auto begin =
      static_cast<size_t>(static_cast<const char*>(t.raw()) - static_cast<const char*>(t.impl()->buffer->data()));
  return Tensor(make_ref<TensorImpl>(t.dtype(), shape, t.impl()->buffer, begin + static_cast<size_t>(i) * bytes));
}

void check_parallel(const char* who, const char* option, int64_t n) {
  if (n >= AUTOTUNE) return;
  throw invalid_argument("[{}] {} is {}: give a positive number, data::AUTOTUNE (-1), or 0 for none", who, option, n);
}

void check_cancelled(const Pipeline& pipeline) {
  if (pipeline.cancelled.load(std::memory_order_relaxed)) {
    throw Error(Code::cancelled, "[data] the iterator is being destroyed");
  }
}

uint64_t draw_seed() {
  Philox gen = RandomContext::current().reserve(1);
  const Philox::Block block = gen();
  return (uint64_t{block[0]} << 32 | block[1]) | 1;  // not 0, which says that nothing is random
}

int64_t nodes::cardinality(const NodePtr& node) { return node->cardinality(); }

NodePtr nodes::finite(const NodePtr& node, const char* who) {
  if (node->cardinality() == INFINITE_CARDINALITY) {
    throw invalid_argument("[{}] the dataset never ends, and neither would {}: take(n) gives its first n elements", who,
                           who);
  }
  return node;
}

ElementSpec nodes::element_spec(const NodePtr& node) { return node->element_spec(); }

std::string nodes::explain(const NodePtr& node) {
  const std::lock_guard lock(node->last_mutex);
  return node->last ? node->last->explain() : "no pass was made yet\n";
}

}  // namespace runnel::data
