#include "runnel/board/api.h"
#include "runnel/board/page.h"

namespace runnel::board {

void add_page_routes(Routes& routes) {
  for (const PageFile& file : page_files()) {
    routes[std::string(file.path)] = [&file](const Request&) {
      return Response{.type = std::string(file.type), .body = std::string(file.content)};
    };
  }
}

}  // namespace runnel::board
