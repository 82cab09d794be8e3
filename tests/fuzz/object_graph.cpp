#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/track/object_graph_bytes.h"

// The bytes of an object graph: an Error, or a graph whose numbers are those of nodes and which comes back from the
// bytes it is written as.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  try {
    const ObjectGraph graph =
        train::object_graph_from_bytes(std::string_view(reinterpret_cast<const char*>(data), size));
    const size_t count = graph.nodes.size();
    if (count == 0) std::abort();
    for (const ObjectGraph::Node& node : graph.nodes) {
      for (const auto& child : node.children) {
        if (child.node >= count) std::abort();
      }
      for (const auto& slot : node.slot_variables) {
        if (slot.variable >= count || slot.slot >= count) std::abort();
      }
    }
    const std::string normal = train::object_graph_to_bytes(graph);
    if (train::object_graph_to_bytes(train::object_graph_from_bytes(normal)) != normal) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
