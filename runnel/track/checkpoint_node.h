#pragma once

// Internal: what copies of a Checkpoint have in common.
#include <vector>

#include "runnel/ops/state.h"
#include "runnel/tensor/object_graph.h"
#include "runnel/tensor/trackable.h"

namespace runnel::train {

// A node whose edges are the parts. With a root the checkpoint is of the graph that begins there, and the parts are
// attached to the root for as long as it is walked.
class CheckpointNode : public Trackable {
 public:
  bool has_root = false;
  Variable save_counter;  // undefined until save or restore makes it

  Trackable& root();  // an Error where it is gone
  std::vector<Edge> attached() { return has_root ? own_parts() : std::vector<Edge>(); }
  ObjectGraph graph() { return ObjectGraph::of(root(), attached()); }
  Variable& counter();

 private:
  std::vector<Edge> own_parts();
};

}  // namespace runnel::train
