// call_fuzzer: millions of random calls of every op, right and wrong ones, eagerly with derivatives and in graphs.
// Meant for the build with AddressSanitizer: whatever a call does, it ends with values or with a runnel::Error. Calls
// run in processes of their own; one that dies, hangs, leaks or throws something else is printed with its call.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <optional>

#include "runnel/autodiff/tape.h"
#include "runnel/base/error.h"
#include "runnel/base/parallel.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/registry.h"
#include "runnel/ops/random.h"
#include "tests/interop/mutate.h"
#include "tests/interop/prepared.h"

// Sizes that no machine has are answered by an error and not by an abort.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=2048:detect_stack_use_after_return=1:"
         "quarantine_size_mb=64";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

namespace runnel::interop {
namespace {

struct Options {
  int64_t calls = 100'000;
  uint64_t seed = 1;
  int jobs = 2;
  std::vector<std::string> only;
  int64_t at = -1;
};

constexpr unsigned kSecondsPerCall = 60;
constexpr int64_t kCallsPerProcess = 4000;
constexpr int kMostDeathsPerOp = 20;

// What a process says of where it is, in memory that outlives it.
struct Progress {
  int64_t number;  // of the call it is at
  int64_t results, errors, no_memory, foreign, died;
};
Progress* progress = nullptr;

struct Drawn {
  Call call;
  How how;
};

// The same call for the same numbers, in every process.
Drawn call_number(const OpDef& op, const std::vector<Call>& stated, const AttributePool& pool, uint64_t seed,
                  int64_t number) {
  Random r(hashed(seed, op.name + ' ' + std::to_string(number)));
  const bool from_sample = !stated.empty() && r.once_in(2);
  Call call = from_sample ? mutated(stated, pool, r) : drawn(op, pool, r);
  const How how = r.once_in(3) ? (r.once_in(2) ? How::ranks : How::nothing) : How::eager;
  return {std::move(call), how};
}

// The inputs of a call, unless there is not enough memory for them.
std::optional<Prepared> prepare(const Call& call) {
  std::optional<Prepared> made;
  try {
    made.emplace(call);
  } catch (const std::bad_alloc&) {
    ++progress->no_memory;
  }
  return made;
}

void add_derivatives(const Call& call, const Prepared& prepared) {
  GradientTape tape;
  const Derivative d = derivative(call, prepared, tape);
  if (!d.empty()) tape.gradient(d.of, d.by, d.dy);
}

void run(const Drawn& d) {
  random::set_seed(0);
  try {
    const auto prepared = prepare(d.call);
    if (!prepared) return;
    if (d.how == How::eager) {
      call_op(d.call.op->name, prepared->in, d.call.attrs);
      if (!d.call.op->stateful) {
        const auto fresh = prepare(d.call);
        if (!fresh) return;
        add_derivatives(d.call, *fresh);
      }
    } else {
      run_in_graph(d.call, prepared->in, d.how);
    }
    ++progress->results;
  } catch (const Error&) {
    ++progress->errors;
  } catch (const std::exception& e) {
    ++progress->foreign;
    std::cerr << "call_fuzzer: " << d.call.op->name << " number " << progress->number << " throws " << e.what() << '\n';
  }
}

std::string text_of(const Drawn& d) {
  try {
    return to_json(d.call, d.how).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 4000);
  } catch (const std::exception& e) {
    return std::string("its inputs cannot be written down: ") + e.what();
  }
}

// Of what the process has by now (the sanitizers' own memory counts) and three gigabytes.
void limit_memory() {
  std::ifstream status("/proc/self/status");
  rlim_t kilobytes = 0;
  for (std::string word; status >> word;) {
    if (word == "VmData:") status >> kilobytes;
  }
  const rlim_t most = (kilobytes << 10) + (rlim_t{3} << 30);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_DATA, &limit);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// Numbers [from, to) of the op, in processes of their own.
void run_op(const OpDef& op, int64_t from, int64_t to, const Options& options, const AttributePool& pool) {
  std::vector<Call> stated = stated_calls(op);
  std::erase_if(stated, [](const Call& c) { return !c.broken.empty(); });
  int died = 0;
  while (from < to) {
    const int64_t end = std::min(to, from + kCallsPerProcess);
    progress->number = from;
    std::cout.flush();
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
      limit_memory();
      set_num_threads(from / kCallsPerProcess % 2 == 0 ? 1 : 2);
      for (; progress->number < end; ++progress->number) {
        const Drawn d = call_number(op, stated, pool, options.seed, progress->number);
        alarm(kSecondsPerCall);
        run(d);
        alarm(0);
      }
      std::exit(0);  // so that leaks are looked for
    }
    int status = 0;
    waitpid(child, &status, 0);
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    from = progress->number + (well ? 0 : 1);
    if (well) continue;
    ++progress->died;
    if (progress->number >= end) {
      std::cerr << "call_fuzzer: " << op.name << " leaks, or dies at the process's end, in the " << kCallsPerProcess
                << " numbers before " << end << '\n';
    } else {
      const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      std::cerr << "call_fuzzer: " << op.name << " number " << progress->number
                << (signal == SIGALRM ? " hangs"
                    : signal != 0     ? " dies of a signal"
                                      : " ends the process")
                << ": " << text_of(call_number(op, stated, pool, options.seed, progress->number)) << '\n';
    }
    if (++died >= kMostDeathsPerOp) {
      std::cerr << "call_fuzzer: " << op.name << " died " << died << " times; the rest of it is left out\n";
      return;
    }
  }
}

int run_all(const Options& options) {
  const std::vector<const OpDef*> all = registry().all();
  const AttributePool pool(all);
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all) {
    if (op->name == "WriteFile") continue;  // it would write anywhere
    if (options.only.empty() || std::ranges::count(options.only, op->name) > 0) ops.push_back(op);
  }
  for (const std::string& name : options.only) {
    if (std::ranges::none_of(ops, [&](const OpDef* op) { return op->name == name; })) {
      std::cerr << "call_fuzzer: no op '" << name << "'; runnel ops lists them\n";
      return 2;
    }
  }
  // Some ops write files: all of them stay here.
  const auto folder = std::filesystem::temp_directory_path() / ("call_fuzzer." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::current_path(folder);
  const auto n = static_cast<int64_t>(ops.size());
  const int64_t each = (options.calls + n - 1) / n;
  auto* all_progress = static_cast<Progress*>(mmap(nullptr, sizeof(Progress) * static_cast<size_t>(options.jobs),
                                                   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> workers;
  for (int job = 0; job < options.jobs; ++job) {
    const pid_t worker = fork();
    if (worker != 0) {
      workers.push_back(worker);
      continue;
    }
    progress = &all_progress[job];
    for (int64_t i = job; i < n; i += options.jobs) {
      const int64_t from = std::max<int64_t>(options.at, 0);
      run_op(*ops[static_cast<size_t>(i)], from, options.at < 0 ? each : from + 1, options, pool);
    }
    std::_Exit(0);
  }
  bool failed = false;
  for (pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    failed = failed || status != 0;
  }
  Progress sum{};
  for (int job = 0; job < options.jobs; ++job) {
    sum.results += all_progress[job].results;
    sum.errors += all_progress[job].errors;
    sum.no_memory += all_progress[job].no_memory;
    sum.foreign += all_progress[job].foreign;
    sum.died += all_progress[job].died;
  }
  std::filesystem::current_path("/");
  std::filesystem::remove_all(folder);
  std::cout << "call_fuzzer: " << n << " ops, seed " << options.seed << ": " << sum.results << " calls gave values, "
            << sum.errors << " an Error, " << sum.no_memory << " have inputs too large for the memory, " << sum.foreign
            << " threw something else, " << sum.died << " died\n";
  return failed || sum.foreign > 0 || sum.died > 0 ? 1 : 0;
}

}  // namespace
}  // namespace runnel::interop

int main(int argc, char** argv) {
  runnel::interop::Options options;
  CLI::App app("Random calls of every op, for builds with sanitizers");
  app.add_option("--calls", options.calls, "In all; every op gets its share");
  app.add_option("--seed", options.seed, "Of the calls");
  app.add_option("--jobs", options.jobs, "Processes at a time")->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "These ops alone")->delimiter(',');
  app.add_option("--at", options.at, "Only the call of this number, as printed for one that failed");
  CLI11_PARSE(app, argc, argv);
  return runnel::interop::run_all(options);
}
