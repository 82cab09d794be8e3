#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::board {

struct ServerOptions {
  std::string host = "127.0.0.1";  // other machines reach it only under another address: "0.0.0.0" is all of this one's
  int port = 0;                    // 0: 6006, or the next one that is free
  bool follow_links = false;       // symbolic links may lead out of the log folders
  std::vector<std::string> allowed_hosts = {};  // names that browsers may use beside the address
};

// What `runnel board` runs: a server of the page that shows the event files below `logdir` (or several folders:
// "name:path,name:path"), on threads of its own. The folders may be missing or empty; the page fills when files come.
// See docs/board.md.
class RUNNEL_API Server {
 public:
  // Listens when this returns; an Error where it cannot, which says who holds the port if that can be known.
  explicit Server(const std::string& logdir, const ServerOptions& options = {},
                  SourceSite where = SourceSite::current());
  ~Server();  // stops it
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  std::string url() const;  // "http://localhost:6006/"
  void stop();              // connections end; a second call does nothing

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace runnel::board
