#include "runnel/track/checkpoint_node.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/saved_graph.h"

namespace runnel::train {

Trackable& CheckpointNode::root() {
  if (!has_root) return *this;
  const Edge* edge = find_edge("root");
  if (!edge) {
    throw make_error(Code::failed_precondition,
                     "[Checkpoint] the object that it was made for is gone; keep it as long as the checkpoint");
  }
  return *edge->object;
}

// Without those that the root has anyway.
std::vector<Trackable::Edge> CheckpointNode::own_parts() {
  const std::vector<Edge> of_root = root().children();
  std::vector<Edge> own = edges();
  std::erase_if(own, [&](const Edge& edge) {
    return std::any_of(of_root.begin(), of_root.end(), [&](const Edge& known) { return known.name == edge.name; });
  });
  return own;
}

Variable& CheckpointNode::counter() {
  make_counter();
  return save_counter;
}

bool CheckpointNode::make_counter() {
  if (save_counter.defined()) return false;
  if (has_root) {
    if (const Edge* known = root().find_edge("save_counter"); known && known->handle.defined()) {
      save_counter = Variable::from_handle(known->handle);
      return false;
    }
  }
  const OutsideTrace outside;  // made once, whatever is being traced
  const Variable made(Tensor(int64_t{0}), {.name = "save_counter", .trainable = false});
  if (has_root) SavedGraph::settle_attached(root(), "save_counter", made.slot());
  track("save_counter", made);
  save_counter = made;
  return true;
}

void CheckpointNode::forget_counter() {
  untrack("save_counter");
  save_counter = Variable();
}

int64_t current_number(const Variable& counter) {
  return static_cast<int64_t>(counter.slot().savable_values().at(0).get().at(0));
}

}  // namespace runnel::train
