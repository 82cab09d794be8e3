#pragma once

// Object graphs of checkpoints, and what rename and merge do with them.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runnel/io/checkpoint_reader.h"
#include "runnel/tensor/object_graph.h"

namespace runnel::tools {

// Nothing where the checkpoint has none: its keys are the names of variables.
std::optional<ObjectGraph> read_object_graph(const io::CheckpointReader& reader);

// Keys of values that the graph names and the checkpoint has not.
std::vector<std::string> missing_keys(const io::CheckpointReader& reader, const ObjectGraph& graph);

using KeyChange = std::function<std::string(const std::string&)>;

// Gives the values of a graph other keys, and edges the names that the keys then have where all keys over an edge agree
// and the path keeps its length.
struct GraphRenames {
  size_t edges = 0;                   // that have got another name
  std::vector<std::string> not_done;  // keys whose path in the graph stays as it was
};
GraphRenames rename_in_graph(ObjectGraph& graph, const KeyChange& renamed);

// One graph of several, object by object: parts of one name are one part. What an earlier graph says stays.
ObjectGraph merge_graphs(const std::vector<ObjectGraph>& graphs);

}  // namespace runnel::tools
