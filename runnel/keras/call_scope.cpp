#include "runnel/keras/call_scope.h"

#include <mutex>
#include <ranges>
#include <set>
#include <unordered_map>

#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {

namespace {

struct AddedLoss {
  std::shared_ptr<Graph> graph;  // of the trace it was added in; null: none
  Tensor loss;
};
struct AddedLosses {
  uint64_t call = 0;  // CallScope::number
  std::vector<AddedLoss> losses;
};
// A layer may outlive it: static ones end after what is the thread's.
thread_local bool losses_are_gone = false;
struct LossTable : std::unordered_map<uint64_t, AddedLosses> {
  ~LossTable() { losses_are_gone = true; }
};
thread_local LossTable losses_by_layer;
thread_local uint64_t last_call = 0;

std::shared_ptr<Graph> traced_graph() {
  const Tracer* tracer = Tracer::current();
  return tracer ? tracer->graph() : nullptr;
}

// Is it the graph that is being traced, or one around it?
bool is_open(const Graph* graph) {
  for (const Tracer* tracer = Tracer::current(); tracer; tracer = tracer->parent()) {
    if (tracer->graph().get() == graph) return true;
  }
  return false;
}

template <class P>
void drop_losses(const P& where) {
  for (auto& [layer, added] : losses_by_layer) std::erase_if(added.losses, where);
  std::erase_if(losses_by_layer, [](const auto& entry) { return entry.second.losses.empty(); });
}

}  // namespace

std::shared_ptr<Graph> outermost_traced_graph() {
  const Tracer* tracer = Tracer::current();
  while (tracer && tracer->parent()) tracer = tracer->parent();
  return tracer ? tracer->graph() : nullptr;
}

std::vector<Variable> StrayVariables::add(const std::vector<Variable>& variables) {
  static std::mutex mutex;
  static std::set<uint64_t> told;
  const std::lock_guard lock(mutex);
  std::vector<Variable> fresh;
  for (const Variable& v : variables) {
    if (told.insert(v.slot().id).second) fresh.push_back(v);
  }
  return fresh;
}

bool StrayVariables::first_made_in(uint64_t layer, const std::string& class_name) {
  static std::mutex mutex;
  static std::set<std::pair<uint64_t, std::string>> told;
  const std::lock_guard lock(mutex);
  return told.emplace(layer, class_name).second;
}

MaskScope::MaskScope() : scope_(thread_context().masks ? thread_context().masks : this) {}

Tensor MaskScope::mask_of(const Tensor& t) {
  const MaskScope* outermost = thread_context().masks;
  if (!outermost) return {};
  for (const auto& [tensor, mask] : std::views::reverse(outermost->masks_)) {
    if (tensor.impl() == t.impl()) return mask;
  }
  return {};
}

void MaskScope::set_mask(const Tensor& t, const Tensor& mask) {
  if (MaskScope* outermost = thread_context().masks) outermost->masks_.emplace_back(t, mask);
}

CallScope::CallScope(const Layer& layer, std::optional<bool> training)
    : layer_(layer),
      outer_(current()),
      training_(training.value_or(outer_ ? outer_->training_ : false)),
      scope_(this, training_),
      number_(outer_ ? outer_->number_ : ++last_call) {}

bool CallLosses::drop_ended() {
  drop_losses([](const AddedLoss& added) { return added.graph && !is_open(added.graph.get()); });
  return losses_by_layer.empty();
}

void CallLosses::add(uint64_t layer, const Tensor& loss) {
  if (const Tracer* tracer = Tracer::current(); tracer && tracer->parent()) {
    throw make_error(Code::failed_precondition,
                     "[add_loss] a loss that is added in a branch or a loop body of a traced function cannot be "
                     "collected: return it from there, and add it behind");
  }
  AddedLosses& added = losses_by_layer[layer];
  // Those of an earlier call are still there if the layer is no registered part of what was called.
  const CallScope* scope = CallScope::current();
  if (const uint64_t call = scope ? scope->number() : last_call; added.call != call) added = {call, {}};
  added.losses.push_back({traced_graph(), loss});
}

std::vector<Tensor> CallLosses::of(uint64_t layer) {
  const auto found = losses_by_layer.find(layer);
  if (found == losses_by_layer.end()) return {};
  std::vector<Tensor> losses;
  for (const auto& [graph, loss] : found->second.losses) {
    if (graph ? is_open(graph.get()) : Tracer::current() == nullptr) losses.push_back(loss);
  }
  return losses;
}

void CallLosses::forget(uint64_t layer) {
  if (!losses_are_gone) losses_by_layer.erase(layer);
}

TracedLosses::~TracedLosses() {
  const std::shared_ptr<Graph> graph = traced_graph();
  if (graph) drop_losses([&](const AddedLoss& added) { return added.graph == graph; });
}

}  // namespace runnel::keras
