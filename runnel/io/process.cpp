#include "runnel/io/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

constexpr size_t kept_output = 4096;

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(Code::resource_exhausted, "[process] no pipe");
    read = ends[0];
    write = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(read);
    close_write();
  }
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
};

pid_t spawn(const std::vector<std::string>& command, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // its own group, to kill it as a whole
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  int error = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw make_error(Code::unavailable, "[process] {}: {}", command.front(), std::generic_category().message(error));
  }
  return pid;
}

// Kills the group and collects the child unless that was done: no way out of run_process leaves it behind.
struct Child {
  pid_t pid;
  int status = 0;
  bool running = true;
  explicit Child(pid_t pid) : pid(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (running) kill_and_wait();
  }
  bool poll_end() {
    if (running && ::waitpid(pid, &status, WNOHANG) == pid) running = false;
    return !running;
  }
  void kill_and_wait() {
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, &status, 0) == -1 && errno == EINTR) {
    }
    running = false;
  }
};

}  // namespace

bool program_exists(const std::string& name) {
  if (name.empty()) return false;
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream dirs(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string dir; std::getline(dirs, dir, ':');) {
    if (::access((dir.empty() ? name : dir + '/' + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

ProcessResult run_process(const std::vector<std::string>& command, std::chrono::seconds timeout,
                          FunctionRef<void()> tick) {
  Pipe pipe;
  Child child(spawn(command, pipe.write));
  pipe.close_write();
  ProcessResult result;
  auto deadline = std::chrono::steady_clock::now() + timeout;
  // A grandchild may keep the pipe open after the child's end, so the child's end is what counts.
  bool ended = false;
  bool open = true;
  while (true) {
    pollfd ready{.fd = open ? pipe.read : -1, .events = POLLIN, .revents = 0};
    bool readable = ::poll(&ready, 1, ended ? 0 : 100) > 0;
    if (readable) {
      std::array<char, 4096> buffer{};
      ssize_t n = ::read(pipe.read, buffer.data(), buffer.size());
      if (n > 0) {
        result.output.append(buffer.data(), static_cast<size_t>(n));
        if (result.output.size() > kept_output) result.output.erase(0, result.output.size() - kept_output);
      } else {
        open = false;
      }
    } else if (ended) {
      break;
    }
    tick();
    ended = child.poll_end();
    if (!ended && std::chrono::steady_clock::now() > deadline) {
      child.kill_and_wait();
      result.timed_out = true;
      break;
    }
  }
  result.status = WIFSIGNALED(child.status) ? 128 + WTERMSIG(child.status) : WEXITSTATUS(child.status);
  return result;
}

}  // namespace runnel::io
