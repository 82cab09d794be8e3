#pragma once

#include <functional>
#include <map>
#include <string>

#include "runnel/board/index.h"
#include "runnel/board/request.h"

namespace runnel::board {

// Answers what browsers and scripts ask of an index; docs/formats/board_api.md lists the routes. Knows nothing of
// connections, and is safe from many threads.
class RUNNEL_API Api {
 public:
  explicit Api(const Index& index);
  // Never throws: what cannot be answered is a response of 4xx or 5xx that says why.
  Response answer(const Request& request) const;

 private:
  using Route = std::function<Response(const Request&)>;
  std::map<std::string, Route> routes_;
};

// The routes of one file each; they throw Errors, whose codes Api makes statuses of.
using Routes = std::map<std::string, std::function<Response(const Request&)>>;
void add_page_routes(Routes& routes);
void add_index_routes(Routes& routes, const Index& index);
void add_scalar_routes(Routes& routes, const Index& index);
void add_value_routes(Routes& routes, const Index& index);
void add_hparams_routes(Routes& routes, const Index& index);
void add_graph_routes(Routes& routes, const Index& index);
void add_tensorboard_routes(Routes& routes, const Index& index);

// The series that the parameter `series` names; an Error (not_found) where there is none.
SeriesInfo series_of(const Request& request, const Index& index);

}  // namespace runnel::board
