#pragma once

#include <memory>

#include "runnel/graph/graph.h"

namespace runnel {

// The same graph in ops that TensorFlow has: those that passes made (OpDef::decompose) are taken apart. The graph
// itself where there are none.
RUNNEL_API std::shared_ptr<const Graph> decomposed(const Graph& graph);

}  // namespace runnel
