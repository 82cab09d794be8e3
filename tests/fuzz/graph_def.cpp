#include <cstdint>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/graph/graph_def.h"

// A GraphDef: either an Error, or a graph that the verifier accepts and that comes back from the bytes it is written
// as.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::shared_ptr<Graph> graph;
  try {
    graph_def_functions(bytes);
    graph = from_graph_def(bytes);
  } catch (const Error&) {
    return 0;
  }
  graph->verify();
  from_graph_def(graph->to_graph_def())->verify();
  return 0;
}
