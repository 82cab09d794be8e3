#pragma once

// Internal: object graphs as the bytes of TensorFlow's TrackableObjectGraph.
#include <string>
#include <string_view>

#include "runnel/tensor/object_graph.h"

namespace runnel::train {

inline constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

RUNNEL_API std::string object_graph_to_bytes(const ObjectGraph& graph);
// Nodes without objects; values have names and keys. An Error (data_loss) that says what is wrong, not where.
RUNNEL_API ObjectGraph object_graph_from_bytes(std::string_view bytes);

}  // namespace runnel::train
