// runnel board: TensorBoard's job.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "runnel/board/server.h"
#include "tools/commands.h"

namespace runnel::tools {
namespace {

struct BoardArguments {
  std::string logdir;
  board::ServerOptions server;
  bool open = false;
};

// Starts the user's browser, which lives on its own.
void open_browser(const std::string& url) {
  const pid_t child = fork();
  if (child != 0) return;
  setsid();
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) dup2(nothing, fd);
  execlp("xdg-open", "xdg-open", url.c_str(), static_cast<char*>(nullptr));
  _exit(1);
}

void serve(const BoardArguments& a) {
  std::signal(SIGCHLD, SIG_IGN);  // the browser's end is of no interest
  const board::Server server(a.logdir, a.server, SourceSite());
  fmt::print("The board of {} is at {} (Ctrl-C ends it)\n", a.logdir, server.url());
  if (a.server.host != "127.0.0.1" && a.server.host != "localhost") {
    fmt::print("It listens on {}: whoever reaches this machine can read what the log folder holds.\n", a.server.host);
  }
  std::fflush(stdout);
  if (a.open) open_browser(server.url());
  // It only reads, so a signal may end the process at any moment.
  while (true) pause();
}

}  // namespace

void add_board(CLI::App& app) {
  CLI::App* board = app.add_subcommand("board", "Show the event files of a folder in the browser");
  auto arguments = std::make_shared<BoardArguments>();
  board->add_option("--logdir,logdir", arguments->logdir, "The log folder; several: NAME:DIR,NAME:DIR")
      ->required()
      ->type_name("DIR");
  board->add_option("--port", arguments->server.port, "Listen there; without it, 6006 or the next that is free")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535));
  board->add_option("--host", arguments->server.host, "Listen on this address; 0.0.0.0 lets other machines in")
      ->type_name("ADDRESS")
      ->capture_default_str();
  board->add_option("--allow-host", arguments->server.allowed_hosts, "A name that browsers may use for this machine")
      ->type_name("NAME");
  board->add_flag("--follow-links", arguments->server.follow_links, "Symbolic links may lead out of the log folder");
  board->add_flag("--open", arguments->open, "Open the page in the browser");
  board->footer(
      "The folder may be empty or missing: the page fills when a program writes to it.\n"
      "Example: runnel board --logdir tensorboard --open");
  board->callback([arguments] { serve(*arguments); });
}

}  // namespace runnel::tools
