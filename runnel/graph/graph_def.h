#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/graph/graph.h"

namespace runnel {

struct GraphDefImport {
  // Which function of the library is meant; the graph itself when empty.
  std::string function = {};
  // Of the graph itself: tensors that become parameters ("x", "x:0"), in this order; its placeholders when empty. They
  // need not be placeholders: what computes them is then left out.
  std::vector<std::string> inputs = {};
  // Tensors that become results; what Graph::to_graph_def marked as such, or else every tensor nobody uses, when empty.
  std::vector<std::string> outputs = {};
  // Nodes that must run although no result needs them.
  std::vector<std::string> targets = {};
  // A graph that was read before, whose variables and tables this one uses too: parts of one file, as its initializer
  // and its training step are. Null: what its nodes name is its own.
  std::shared_ptr<const Graph> state_of = {};
};

// The graph that a GraphDef describes. Throws an Error that names the node: bytes that are no GraphDef (data_loss), an
// op that does not exist here (not_found), inputs or attributes that do not fit (invalid_argument).
RUNNEL_API std::shared_ptr<Graph> from_graph_def(std::string_view bytes, const GraphDefImport& options = {},
                                                 SourceSite where = SourceSite::current());
// The names of the functions in the library of a GraphDef.
RUNNEL_API std::vector<std::string> graph_def_functions(std::string_view bytes,
                                                        SourceSite where = SourceSite::current());

}  // namespace runnel
