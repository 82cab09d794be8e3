#pragma once

// Internal: what copies of a Checkpoint have in common.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runnel/ops/state.h"
#include "runnel/tensor/object_graph.h"
#include "runnel/tensor/trackable.h"
#include "runnel/track/background_writer.h"
#include "runnel/track/given_parts.h"

namespace runnel::train {

// A node whose edges are the parts. With a root the checkpoint is of the graph that begins there, and the parts are
// attached to the root for as long as it is walked.
class CheckpointNode : public Trackable, public GivenParts {
 public:
  bool has_root = false;
  Variable save_counter;  // undefined until save or restore makes it
  BackgroundWriter writer;

  Trackable& root();  // an Error where it is gone
  std::vector<Edge> attached() { return has_root ? own_parts() : std::vector<Edge>(); }
  ObjectGraph graph() { return ObjectGraph::of(root(), attached()); }
  Variable& counter();
  bool make_counter();  // false where there is one
  void forget_counter();

 private:
  std::vector<Edge> own_parts();
};

// What is to be done around the writing of a checkpoint.
struct WriteHooks {
  // The files are in their places, and no other process may change the folder.
  std::function<void(const std::string& path)> in_place = {};
  // By the thread of an asynchronous save, when it is done or has failed.
  std::function<void(double processor_seconds)> written = {};
};

// The value of a counter as it is now, whatever graph is open.
int64_t current_number(const Variable& counter);

}  // namespace runnel::train
