#pragma once

#include <string_view>

#include "runnel/base/export.h"
#include "runnel/board/json.h"

namespace runnel::board {

// A GraphDef as the page draws it: {"nodes": [{name, op, inputs, device, attrs}], "functions": [{name, nodes}]}.
// Attributes are short texts; of constants only dtype and shape are told. An Error where the bytes are no graph.
RUNNEL_API Json graph_json(std::string_view graph_def);
// The graphs of a RunMetadata, as they were traced: several are told apart by a scope before their names.
RUNNEL_API Json run_metadata_graph_json(std::string_view run_metadata);

}  // namespace runnel::board
