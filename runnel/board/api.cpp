#include "runnel/board/api.h"

#include "runnel/base/format.h"
#include "runnel/base/version.h"
#include "runnel/board/json.h"

namespace runnel::board {
namespace {

int status_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::out_of_range: return 400;
    case Code::not_found: return 404;
    case Code::data_loss: return 422;  // the file says it so
    case Code::resource_exhausted: return 413;
    default: return 500;
  }
}

Json series_json(const SeriesInfo& s) {
  Json json = {{"id", s.id},
               {"run", s.run},
               {"tag", s.tag.tag},
               {"plugin", s.tag.plugin},
               {"count", s.count},
               {"first_step", s.first.step},
               {"last_step", s.last.step},
               {"first_wall", json_number(s.first.wall)},
               {"last_wall", json_number(s.last.wall)}};
  if (s.tag.is_scalar()) json["last_value"] = json_number(s.last.value);
  if (s.not_finite > 0) json["not_finite"] = s.not_finite;
  if (!s.tag.display_name.empty()) json["display_name"] = s.tag.display_name;
  if (!s.tag.description.empty()) json["description"] = s.tag.description;
  return json;
}

Response list_index(const Request& request, const Index& index) {
  const Listing listing = index.list(static_cast<uint64_t>(request.number("since", 0, 0)));
  Json series = Json::array();
  for (const SeriesInfo& s : listing.series) series.push_back(series_json(s));
  Json dirs = Json::array();
  for (const LogDir& dir : index.dirs()) dirs.push_back({{"name", dir.name}, {"path", dir.path}});
  return json_response({{"version", version()},
                        {"generation", listing.generation},
                        {"whole", listing.whole},
                        {"loading", listing.loading},
                        {"logdirs", dirs},
                        {"files", listing.files},
                        {"bytes", listing.bytes},
                        {"bytes_read", listing.bytes_read},
                        {"complaints", listing.complaints},
                        {"runs", listing.runs},
                        {"series", series}});
}

}  // namespace

SeriesInfo series_of(const Request& request, const Index& index) {
  const uint32_t id = request.id("series");
  std::optional<SeriesInfo> info = index.find(id);
  if (!info) throw make_error(Code::not_found, "there is no series {}; it may have been deleted", id);
  return std::move(*info);
}

void add_index_routes(Routes& routes, const Index& index) {
  routes["/api/index"] = [&index](const Request& request) { return list_index(request, index); };
}

Api::Api(const Index& index) {
  add_page_routes(routes_);
  add_index_routes(routes_, index);
  add_scalar_routes(routes_, index);
  add_value_routes(routes_, index);
  add_hparams_routes(routes_, index);
  add_graph_routes(routes_, index);
  add_tensorboard_routes(routes_, index);
}

Response Api::answer(const Request& request) const {
  const auto route = routes_.find(request.path);
  if (route == routes_.end()) return error_response(404, "there is nothing at this address");
  if (request.method != "GET" && request.method != "HEAD") {
    Response response = error_response(405, "the board is read only: GET and HEAD are what it answers");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  try {
    return route->second(request);
  } catch (const Error& e) {
    return error_response(status_of(e.code()), e.what());
  } catch (const std::exception& e) {
    return error_response(500, e.what());
  }
}

}  // namespace runnel::board
