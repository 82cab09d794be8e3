#include "runnel/data/iterator.h"

#include <optional>

#include "runnel/autodiff/record.h"
#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"

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

struct AnyIterator::Impl {
  NodePtr node;
  uint64_t epoch = 0;
  std::vector<uint64_t> seeds;  // in the order of collect_seeds
  std::shared_ptr<Pipeline> pipeline;
  IteratorPtr root;

  void start() {
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
    const std::lock_guard lock(node->last_mutex);
    node->last = pipeline;
  }
  void stop() {
    if (pipeline) pipeline->cancelled.store(true, std::memory_order_relaxed);
    root.reset();
  }
  ~Impl() { stop(); }
};

namespace {

// Stages run as plain code: no tape records them, no trace takes their ops.
template <class F>
auto apart(const F& f) {
  std::optional<OutsideTrace> outside;
  if (current_interceptor() != nullptr || current_recorder() != nullptr) outside.emplace();
  return f();
}

}  // namespace

AnyIterator::AnyIterator(NodePtr node) : impl_(std::make_shared<Impl>()) {
  impl_->node = std::move(node);
  impl_->epoch = impl_->node->iterations.fetch_add(1, std::memory_order_relaxed);
  apart([&] { impl_->start(); });
}

bool AnyIterator::next(Item& out) {
  return apart([&] { return impl_->root->next(out); });
}

std::optional<Nest> AnyIterator::next() {
  Item item;
  if (!next(item)) return std::nullopt;
  return to_nest(item);
}

std::string AnyIterator::save() const {
  StateWriter out;
  out.text(kMagic);
  out.integer(fingerprint_of(*impl_->node));
  out.integer(impl_->epoch);
  out.integer(impl_->seeds.size());
  for (const uint64_t seed : impl_->seeds) out.integer(seed);
  apart([&] { save_nested(*impl_->root, out); });
  std::string bytes = out.take();
  append_fixed32(bytes, checksum(bytes));
  return bytes;
}

void AnyIterator::restore(std::string_view state) {
  if (state.size() < 4 ||
      checksum(state.substr(0, state.size() - 4)) != load_fixed32(state.data() + state.size() - 4)) {
    throw Error(Code::data_loss, "[restore] the bytes are no saved state of an iterator, or damaged");
  }
  StateReader in(state.substr(0, state.size() - 4));
  if (in.text() != kMagic) throw Error(Code::data_loss, "[restore] the bytes are no saved state of an iterator");
  if (in.integer() != fingerprint_of(*impl_->node)) {
    throw make_error(Code::failed_precondition, "[restore] the state was saved of another pipeline than {}",
                     impl_->node->fingerprint());
  }
  apart([&] {
    impl_->stop();
    impl_->epoch = in.integer();
    impl_->seeds.assign(in.integer(), 0);
    for (uint64_t& seed : impl_->seeds) seed = in.integer();
    impl_->start();
    restore_nested(*impl_->root, in);
  });
}

std::string AnyIterator::explain() const { return impl_->pipeline->explain(); }
const Pipeline& AnyIterator::pipeline() const { return *impl_->pipeline; }

}  // namespace runnel::data
