#pragma once

// Internal: what a RestoreStatus looks at.
#include <memory>
#include <string>
#include <vector>

#include "runnel/io/checkpoint_reader.h"
#include "runnel/tensor/saved_graph.h"
#include "runnel/track/checkpoint_node.h"
#include "runnel/track/restore_status.h"

namespace runnel::train {

struct Restoration {
  std::shared_ptr<CheckpointNode> checkpoint;
  std::shared_ptr<const io::CheckpointReader> reader;  // null: of no checkpoint
  std::shared_ptr<SavedGraph> saved;
  // Of a file that is no checkpoint and was loaded at once, so that nothing waits: what became of its values.
  std::string loaded_file = {};
  std::vector<RestoreStatus::Row> loaded = {};
};

}  // namespace runnel::train
