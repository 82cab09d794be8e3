#pragma once

// Internal: what a RestoreStatus looks at.
#include <memory>
#include <string>

#include "runnel/io/checkpoint_reader.h"
#include "runnel/tensor/saved_graph.h"
#include "runnel/track/checkpoint_node.h"

namespace runnel::train {

struct Restoration {
  std::shared_ptr<CheckpointNode> checkpoint;
  std::shared_ptr<const io::CheckpointReader> reader;  // null: nothing was to be restored
  std::shared_ptr<SavedGraph> saved;
};

}  // namespace runnel::train
