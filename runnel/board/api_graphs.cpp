// Graphs: of programs, of traced functions, of Keras models.
#include "runnel/base/format.h"
#include "runnel/board/api.h"
#include "runnel/board/graph_json.h"
#include "runnel/board/json.h"
#include "runnel/board/values.h"

namespace runnel::board {
namespace {

Json graph_of(const std::string& plugin, const io::EventPoint& point) {
  const Texts texts = texts_of(point);
  if (texts.values.empty()) throw make_error(Code::data_loss, "the graph of '{}' is empty", point.tag);
  const std::string& bytes = texts.values[0];
  if (plugin == "graphs") return graph_json(bytes);
  if (plugin == "graph_keras_model") return {{"keras", bytes}};
  return run_metadata_graph_json(bytes);
}

// The last graph of a tag; traces are written once, and where they are written again the last is what runs.
Response read_graph(const Request& request, const Index& index) {
  const SeriesInfo info = series_of(request, index);
  if (!info.tag.plugin.starts_with("graph")) {
    throw invalid_argument("'{}' holds {}, no graph", info.tag.tag, info.tag.plugin);
  }
  const std::vector<ValuePlace> places = index.places(info.id);
  std::optional<Json> graph;
  if (!places.empty()) {
    index.read_value(places.back().file, places.back().offset, info.tag.tag,
                     [&](const io::EventPoint& point) { graph = graph_of(info.tag.plugin, point); });
  }
  if (!graph) throw make_error(Code::not_found, "the graph of '{}' is no longer there", info.tag.tag);
  return json_response(*graph);
}

}  // namespace

void add_graph_routes(Routes& routes, const Index& index) {
  routes["/api/graph"] = [&index](const Request& request) { return read_graph(request, index); };
}

}  // namespace runnel::board
