#pragma once

#include <string>
#include <vector>

#include "runnel/board/request.h"

namespace runnel::board {

// Keeps pages of other sites from reading what the board shows. A name of theirs may point to this machine, so the
// name that the browser used (Host) must be one of ours; and no page of theirs may ask (Origin, Sec-Fetch-Site).
class RUNNEL_API Guard {
 public:
  // `bound` is what the server listens on. Bound to all addresses it takes every address written in numbers; names must
  // be told.
  Guard(std::string bound, std::vector<std::string> names = {});

  // Why the request must not be answered; nothing: it may.
  std::optional<std::string> refuses(const Request& request) const;

 private:
  bool known(const std::string& host) const;
  std::string bound_;
  std::vector<std::string> names_;
};

// What every answer carries: no other page may frame it, no script but ours runs in it, nothing is fetched elsewhere.
RUNNEL_API const std::vector<std::pair<std::string, std::string>>& safe_headers();

}  // namespace runnel::board
