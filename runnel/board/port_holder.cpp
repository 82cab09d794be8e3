#include "runnel/board/port_holder.h"

#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runnel/base/format.h"

namespace runnel::board {
namespace {

namespace fs = std::filesystem;

// The inodes of the sockets that listen there, from /proc/net.
std::set<std::string> listening_sockets(int port) {
  constexpr const char* kListening = "0A";
  const std::string suffix = fmt::format(":{:04X}", port);
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);  // the heading
    while (std::getline(in, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
      if (state == kListening && local.ends_with(suffix)) inodes.insert("socket:[" + inode + "]");
    }
  }
  return inodes;
}

bool holds(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (const fs::directory_entry& fd : fs::directory_iterator(process / "fd", error)) {
    const fs::path target = fs::read_symlink(fd.path(), error);
    if (!error && sockets.contains(target.string())) return true;
  }
  return false;
}

}  // namespace

std::string port_holder(int port) {
  const std::set<std::string> sockets = listening_sockets(port);
  if (sockets.empty()) return "";
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    const std::string name = process.path().filename().string();
    if (name.empty() || !std::isdigit(static_cast<unsigned char>(name[0])) || !holds(process.path(), sockets)) continue;
    std::string command;
    std::ifstream(process.path() / "comm") >> command;
    return fmt::format("process {} ({})", name, command);
  }
  return "";
}

}  // namespace runnel::board
