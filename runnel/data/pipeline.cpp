#include "runnel/data/pipeline.h"

#include <unistd.h>

#include <algorithm>

#include "runnel/base/cpu_count.h"
#include "runnel/base/format.h"

namespace runnel::data {
namespace {

int64_t default_budget() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? pages * size / 4 : int64_t{1} << 30;
}

std::string time_text(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
  return fmt::format("{:.1f} ms", ns / 1e6);
}

std::string bytes_text(int64_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1024)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

double StageStats::mean_ns() const {
  const int64_t n = samples.load(std::memory_order_relaxed);
  return n == 0 ? 0 : static_cast<double>(sampled_ns.load(std::memory_order_relaxed)) / static_cast<double>(n);
}

Pipeline::Pipeline(const DatasetOptions& options)
    : options(options),
      threads(options.threads > 0 ? options.threads : usable_cpus()),
      budget(options.byte_budget > 0 ? options.byte_budget : default_budget()) {}

StageStats& Pipeline::stage(int parent, const std::string& name, const std::string& details) {
  const std::lock_guard lock(mutex_);
  for (const auto& s : stages_) {
    if (s->parent == parent && s->name == name && s->details == details) return *s;
  }
  auto made = std::make_unique<StageStats>();
  made->name = name;
  made->details = details;
  made->path = parent < 0 ? name : stages_[static_cast<size_t>(parent)]->path + "::" + name;
  made->parent = parent;
  made->id = static_cast<int>(stages_.size());
  stages_.push_back(std::move(made));
  return *stages_.back();
}

StageStats& Pipeline::stage_by_id(int id) {
  const std::lock_guard lock(mutex_);
  return *stages_[static_cast<size_t>(id)];
}

const StageStats* Pipeline::find_stage(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& s : stages_) {
    if (s->name == name) return s.get();
  }
  return nullptr;
}

std::string Pipeline::explain() const {
  const std::lock_guard lock(mutex_);
  const double elapsed = std::max(seconds(), 1e-9);
  const size_t n = stages_.size();
  // A stage's own time is what its calls took without those of its inputs that ran inside them.
  std::vector<double> total(n), own(n), load(n);
  for (size_t i = 0; i < n; ++i) {
    const StageStats& s = *stages_[i];
    total[i] = s.parallelism.load() > 0 ? static_cast<double>(s.busy_ns.load())
                                        : s.mean_ns() * static_cast<double>(s.elements.load());
    own[i] = total[i];
  }
  for (size_t i = 0; i < n; ++i) {
    const StageStats& s = *stages_[i];
    if (s.parent < 0) continue;
    // What an input with threads of its own took of its consumer's time is the waiting.
    const double inside = s.parallelism.load() > 0 ? static_cast<double>(s.wait_ns.load()) : total[i];
    own[static_cast<size_t>(s.parent)] -= inside;
  }
  size_t slowest = 0;
  for (size_t i = 0; i < n; ++i) {
    int threads = 1;  // of the nearest stage that has some, itself included
    for (int at = static_cast<int>(i); at >= 0; at = stages_[static_cast<size_t>(at)]->parent) {
      if (const int p = stages_[static_cast<size_t>(at)]->parallelism.load(); p > 0) {
        threads = p;
        break;
      }
    }
    own[i] = std::max(own[i], 0.0);
    load[i] = own[i] / threads / (elapsed * 1e9);
    if (load[i] > load[slowest]) slowest = i;
  }
  std::string text = fmt::format("{:<34} {:>12} {:>12} {:>10} {:>6} {:>8} {:>11} {:>9}\n", "stage", "elements",
                                 "elements/s", "own time", "busy", "threads", "queue", "waited");
  std::vector<std::pair<size_t, int>> stack;
  for (size_t i = n; i-- > 0;) {
    if (stages_[i]->parent < 0) stack.emplace_back(i, 0);
  }
  while (!stack.empty()) {
    const auto [i, depth] = stack.back();
    stack.pop_back();
    const StageStats& s = *stages_[i];
    const int64_t elements = s.elements.load();
    const std::string name =
        std::string(static_cast<size_t>(depth) * 2, ' ') + s.name + (s.details.empty() ? "" : "(" + s.details + ")");
    const bool threads = s.parallelism.load() > 0;
    text += fmt::format(
        "{:<34} {:>12} {:>12.0f} {:>10} {:>5.0f}% {:>8} {:>11} {:>8.0f}%{}\n", name, elements,
        static_cast<double>(elements) / elapsed, time_text(elements > 0 ? own[i] / static_cast<double>(elements) : 0),
        100 * std::min(load[i], 1.0), threads ? fmt::format("{}{}", s.parallelism.load(), s.tuned ? "*" : "") : "-",
        threads ? fmt::format("{}/{}{}", s.ready.load(), s.depth.load(), s.tuned ? "*" : "") : "-",
        100 * static_cast<double>(s.wait_ns.load()) / (elapsed * 1e9),
        i == slowest && load[i] > 0 ? "  <- bottleneck" : "");
    if (s.skipped.load() > 0) text += fmt::format("{:>{}}errors skipped: {}\n", "", depth * 2 + 2, s.skipped.load());
    for (size_t k = n; k-- > 0;) {
      if (stages_[k]->parent == static_cast<int>(i)) stack.emplace_back(k, depth + 1);
    }
  }
  text += fmt::format("{:.2f} s; buffers {} of {} at most {}; * chosen at run time\n", elapsed,
                      bytes_text(budget.used()), bytes_text(budget.limit()), bytes_text(budget.peak()));
  return text;
}

}  // namespace runnel::data
