// interop_driver: writes calls of every op, and what they gave here, for TensorFlow to judge (judge.py).
// One file OP.jsonl per op; two lines a call: the call, then what came of it. Each op runs in a process of its own: one
// that dies is written down as the answer to the call it died of, and the next process goes on behind it.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <unordered_set>

#include "runnel/base/parallel.h"
#include "runnel/op/registry.h"
#include "runnel/ops/random.h"
#include "tests/interop/call.h"
#include "tests/interop/mutate.h"

namespace runnel::interop {
namespace {

using nlohmann::json;

struct Options {
  std::filesystem::path out;
  uint64_t seed = 1;
  int random = 200;
  int jobs = 2;
  std::vector<std::string> only;
};

constexpr unsigned kSecondsPerCall = 20;
constexpr int64_t kMostElements = 5000;  // of the outputs of a random call
constexpr int kDrawsPerCall = 4;
constexpr rlim_t kMostMemory = rlim_t{3} << 30;

// What a process says of the call it is at, in memory that outlives it.
struct Progress {
  int next;  // number of the call: samples first, then random ones
  int kept;  // random calls written so far
  char stage[32];
  size_t size;
  char call[1 << 20];
};
Progress* progress = nullptr;

// Messages may quote bytes that are no text.
std::string line(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace) + '\n'; }

void at_stage(const char* stage) { std::strncpy(progress->stage, stage, sizeof progress->stage - 1); }

class OpRun {
 public:
  OpRun(const OpDef& op, const Options& options, const AttributePool& pool)
      : op_(op), options_(options), pool_(pool), stated_(stated_calls(op)) {
    std::erase_if(stated_, [](const Call& c) { return !c.broken.empty(); });
  }

  void go_on(int from) {
    file_.open(options_.out / (op_.name + ".jsonl"), std::ios::app);
    const int samples = static_cast<int>(stated_.size());
    const bool random = samples > 0 && op_.name != "WriteFile";  // it would write anywhere
    // Some draws come twice or give too much: then there are more of them.
    const int end = samples + (random ? kDrawsPerCall * options_.random : 0);
    for (int i = from; i < end && (i < samples || progress->kept < options_.random); ++i) {
      progress->next = i;
      if (i < samples) {
        write(stated_[static_cast<size_t>(i)], How::eager, "s" + std::to_string(i));
      } else {
        write_random(i - samples);
      }
    }
  }

 private:
  // Two of three give a result here, where a few attempts can find one; the others are what comes.
  void write_random(int number) {
    const int attempts = number % 3 == 0 ? 1 : 8;
    json call, result;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      Random r(hashed(options_.seed, op_.name + ' ' + std::to_string(number) + ' ' + std::to_string(attempt)));
      const Call c = mutated(stated_, pool_, r);
      const How how = r.once_in(5) ? (r.once_in(2) ? How::ranks : How::nothing) : How::eager;
      call = interop::to_json(c, how);
      call["id"] = "r" + std::to_string(number);
      result = run(c, how, call);
      if (num_elements(result) > kMostElements) continue;
      if (result.contains("out")) break;
    }
    if (num_elements(result) > kMostElements) return;
    const std::string text = call["inputs"].dump() + call["attrs"].dump();
    if (!seen_.insert(text).second) return;
    ++progress->kept;
    file_ << line(call) << line(result) << std::flush;
  }

  void write(const Call& c, How how, const std::string& id) {
    json call = interop::to_json(c, how);
    call["id"] = id;
    const json result = run(c, how, call);
    file_ << line(call) << line(result) << std::flush;
  }

  json run(const Call& c, How how, const json& call) {
    std::string text = line(call);
    if (text.size() > sizeof progress->call) text = line({{"op", call["op"]}, {"id", call["id"]}});
    progress->size = text.size();
    std::memcpy(progress->call, text.data(), progress->size);
    random::set_seed(0);
    alarm(kSecondsPerCall);
    const json result = answer(c, how, at_stage);
    alarm(0);
    return result;
  }

  const OpDef& op_;
  const Options& options_;
  const AttributePool& pool_;
  std::vector<Call> stated_;
  std::ofstream file_;
  std::unordered_set<std::string> seen_;
};

void limit_memory() {
  const rlimit limit{kMostMemory, kMostMemory};
  setrlimit(RLIMIT_AS, &limit);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// Runs the op to its end in processes of their own; returns how many died.
int run_op(const OpDef& op, const Options& options, const AttributePool& pool) {
  std::filesystem::remove(options.out / (op.name + ".jsonl"));
  int died = 0;
  progress->next = 0;
  progress->kept = 0;
  while (true) {
    const int from = progress->next;
    progress->size = 0;
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
      limit_memory();
      OpRun(op, options, pool).go_on(from);
      std::_Exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return died;
    ++died;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const std::string how = signal == SIGALRM ? "hangs" : signal ? strsignal(signal) : "exits";
    std::ofstream file(options.out / (op.name + ".jsonl"), std::ios::app);
    file << std::string(progress->call, progress->size) << line({{"crash", how}, {"stage", progress->stage}});
    ++progress->next;
    if (died > 100) {
      std::cerr << "interop_driver: " << op.name << " died " << died << " times; the rest of it is left out\n";
      return died;
    }
  }
}

int run_all(const Options& options) {
  set_num_threads(1);  // a process that forks has no threads; the bits are the same with any number
  std::filesystem::create_directories(options.out);
  const std::vector<const OpDef*> ops = registry().all();
  const AttributePool pool(ops);
  std::vector<const OpDef*> mine;
  for (const OpDef* op : ops) {
    if (options.only.empty() || std::ranges::count(options.only, op->name) > 0) mine.push_back(op);
  }
  std::vector<pid_t> workers;
  for (int job = 0; job < options.jobs; ++job) {
    const pid_t worker = fork();
    if (worker != 0) {
      workers.push_back(worker);
      continue;
    }
    progress = static_cast<Progress*>(
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    int died = 0;
    for (size_t i = static_cast<size_t>(job); i < mine.size(); i += static_cast<size_t>(options.jobs)) {
      died += run_op(*mine[i], options, pool);
    }
    std::_Exit(died > 0 ? 1 : 0);
  }
  bool all_lived = true;
  for (pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    all_lived = all_lived && status == 0;
  }
  if (!all_lived) std::cerr << "interop_driver: some calls died; they are in the files\n";
  return 0;
}

}  // namespace
}  // namespace runnel::interop

int main(int argc, char** argv) {
  runnel::interop::Options options;
  CLI::App app("Writes calls of every op with what they give here, for tests/interop/judge.py");
  app.add_option("--out", options.out, "The folder to write to")->required();
  app.add_option("--seed", options.seed, "Of the random calls");
  app.add_option("--random", options.random, "Random calls for each op");
  app.add_option("--jobs", options.jobs, "Processes at a time")->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "These ops alone")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  return runnel::interop::run_all(options);
}
