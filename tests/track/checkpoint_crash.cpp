// usage: checkpoint_crash [--kills N] [--seed N]
// Programs that save again and again are killed at random moments, N times for each way to save: one after the other,
// in the background, two programs in one folder. After every kill the folder's latest checkpoint is whole: all its
// values are of one step, and no step that a program said to be saved is lost. The next program goes on from there.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runnel/io/checkpoint_names.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint_manager.h"
#include "tests/support/temp_dir.h"

extern char** environ;

namespace {

using namespace runnel;

constexpr int kKeep = 3;

// Values of several sizes, all elements of which are the step.
struct Steps {
  Variable step{int64_t{0}, {.name = "step"}};
  Variable small{zeros({7}), {.name = "small"}};
  Variable middle{zeros({40, 100}), {.name = "middle"}};
  Variable large{zeros({400, 100}), {.name = "large"}};
  train::Checkpoint checkpoint{{{"step", step}, {"small", small}, {"middle", middle}, {"large", large}}};

  void set(int64_t now) {
    step.assign(now);
    for (const Variable& v : {small, middle, large}) v.assign(fill(v.shape(), static_cast<float>(now)));
  }
  // The step that all values have; an Error when they are of several.
  int64_t whole() const {
    const auto now = step.value().item<int64_t>();
    for (const Variable& v : {small, middle, large}) {
      for (const float element : v.value().to_vector<float>()) {
        if (element != static_cast<float>(now)) throw std::runtime_error(v.name() + " is of another step");
      }
    }
    return now;
  }
};

// --- the program that is killed ---

// Says on standard output which step is on the disk.
void say(int64_t step) {
  if (::write(STDOUT_FILENO, &step, sizeof step) != sizeof step) std::abort();
}

int save_for_ever(const std::string& dir, const std::string& way, int64_t first) {
  Steps steps;
  const bool async = way == "async";
  train::CheckpointManager manager(steps.checkpoint, {.directory = dir, .max_to_keep = kKeep});
  // Of two programs each has its own numbers, and what one restores the other may have removed.
  if (way != "two") manager.restore_or_initialize();
  int64_t at = way == "two" ? first : steps.whole();
  say(0);
  while (true) {
    ++at;
    steps.set(at);
    manager.save(at, {.options = {.experimental_enable_async_checkpoint = async}});
    if (!async) say(at);
    if (async && at % 4 == 0) {
      manager.sync();
      say(at);
    }
  }
}

// --- the test ---

class Child {
 public:
  Child(const std::string& dir, const std::string& way, int64_t first) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string number = std::to_string(first);
    std::vector<std::string> words = {"checkpoint_crash", "--save", dir, way, number};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int failed = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    out_ = ends[0];
    if (failed != 0) throw std::runtime_error("the program cannot be started again");
    read_one();  // it has restored what was there
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) kill();
    ::close(out_);
  }

  void wait_for(int64_t step) {
    while (last_ < step && read_one()) {
    }
  }

  // The last step that it said to be on the disk.
  int64_t kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) throw std::runtime_error("the program ended by itself");
    while (read_one()) {
    }
    return last_;
  }

 private:
  bool read_one() {
    int64_t step = 0;
    if (::read(out_, &step, sizeof step) != sizeof step) return false;
    last_ = step;
    return true;
  }
  pid_t pid_ = 0;
  int out_ = -1;
  int64_t last_ = 0;
};

struct Verdict {
  int64_t step;
  size_t files;
};

Verdict judge(const std::string& dir) {
  const std::optional<std::string> latest = train::latest_checkpoint(dir);
  const size_t files = Env::posix().list(dir).size();
  if (!latest) {
    if (Env::posix().exists(join_path(dir, "checkpoint"))) throw std::runtime_error("the latest checkpoint is missing");
    return {0, files};
  }
  Steps steps;
  steps.checkpoint.restore(latest).assert_consumed();
  const int64_t step = steps.whole();
  if (!latest->ends_with("-" + std::to_string(step))) {
    throw std::runtime_error(*latest + " has the values of step " + std::to_string(step));
  }
  return {step, files};
}

// What a few saves take here and now.
std::chrono::microseconds time_of_saves(const std::string& way) {
  const test::TempDir dir;
  Child child(dir.path(), way, 0);
  const auto begin = std::chrono::steady_clock::now();
  child.wait_for(4);
  const auto end = std::chrono::steady_clock::now();
  child.kill();
  return std::chrono::duration_cast<std::chrono::microseconds>(end - begin);
}

void test_way(const std::string& way, int kills, std::mt19937& random) {
  const test::TempDir dir;
  const auto begin = std::chrono::steady_clock::now();
  const auto longest = static_cast<int>(time_of_saves(way).count());
  size_t most_files = 0;
  int64_t last = 0;
  for (int i = 0; i < kills; ++i) {
    std::vector<std::unique_ptr<Child>> children;
    children.push_back(std::make_unique<Child>(dir.path(), way, last));
    if (way == "two") children.push_back(std::make_unique<Child>(dir.path(), way, last + 2));
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, longest)(random)));
    int64_t said = 0;
    for (const auto& child : children) said = std::max(said, child->kill());
    const Verdict verdict = judge(dir.path());
    // The later one of two programs may have the smaller numbers.
    if (way != "two" && verdict.step < said) {
      throw std::runtime_error("step " + std::to_string(said) + " was saved, and the latest is " +
                               std::to_string(verdict.step));
    }
    last = std::max(last, verdict.step);
    most_files = std::max(most_files, verdict.files);
  }
  // Those that are kept, a new one, the state file, and what the last kills left. Of two programs one goes on with
  // other numbers, so that a checkpoint which the state file did not name yet stays.
  const size_t allowed = 2 * (kKeep + 2) + 1 + 8;
  if (way != "two" && most_files > allowed) {
    std::string names;
    for (const std::string& name : Env::posix().list(dir.path())) names += "\n  " + name;
    throw std::runtime_error("the folder grew to " + std::to_string(most_files) + " files; at the end it has" + names);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%-5s %d kills, %lld steps, at most %zu files, %.1f s\n", way.c_str(), kills,
              static_cast<long long>(last), most_files, seconds);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 5 && !std::strcmp(argv[1], "--save")) return save_for_ever(argv[2], argv[3], std::atoll(argv[4]));
  int kills = 20;
  unsigned seed = std::random_device()();
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--kills")) kills = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--seed")) seed = static_cast<unsigned>(std::atoll(argv[i + 1]));
  }
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const char* way : {"sync", "async", "two"}) test_way(way, kills, random);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "checkpoint_crash: %s\n", error.what());
  return 1;
}
