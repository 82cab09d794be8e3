#pragma once

// What the stages of one running pipeline share: options, the byte budget, the wish to stop, figures.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/data/options.h"

namespace runnel::data {

class DatasetNode;

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Bytes held by buffers of a pipeline. What cannot wait (the first element of a queue) is taken in any case.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit) {}
  bool fits(int64_t bytes) const { return used_.load(std::memory_order_relaxed) + bytes <= limit_; }
  void take(int64_t bytes) {
    const int64_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void give(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  int64_t limit() const { return limit_; }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

// Figures of one stage. Times are of sampled calls, and of calls inside them.
struct StageStats {
  std::string name;
  std::string details;
  std::string path;  // the stages from the consumer's side down to this one: "Prefetch::Batch::Map"
  int parent = -1;
  int id = 0;
  std::atomic<int64_t> elements{0};
  std::atomic<int64_t> samples{0};     // calls that were timed
  std::atomic<int64_t> sampled_ns{0};  // what they took, inputs included
  std::atomic<int64_t> wait_ns{0};     // its consumer waited for an element
  std::atomic<int64_t> busy_ns{0};     // of its own threads
  std::atomic<int> parallelism{0};     // 0: no threads of its own
  std::atomic<int> depth{0};           // elements that may be ready or under way
  std::atomic<int> ready{0};
  std::atomic<int64_t> skipped{0};  // ignore_errors
  std::atomic<bool> tuned{false};

  double mean_ns() const;
};

class RUNNEL_API Pipeline {
 public:
  explicit Pipeline(const DatasetOptions& options);

  const DatasetOptions options;
  const int threads;
  Budget budget;
  std::atomic<bool> cancelled{false};
  std::map<const DatasetNode*, uint64_t> seeds;  // written before the first stage is made

  // The stage of this name below `parent`; made with the first call.
  StageStats& stage(int parent, const std::string& name, const std::string& details);
  StageStats& stage_by_id(int id);
  // A table of the stages; the one that holds up the rest is marked.
  std::string explain() const;
  double seconds() const { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }
  const StageStats* find_stage(const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<StageStats>> stages_;
  int64_t start_ns_ = now_ns();
};

// About one call in 16, at random: cheap enough for every element.
inline bool sampled() {
  thread_local uint32_t x = 12345;
  x = x * 1664525u + 1013904223u;
  return (x >> 28) == 0;
}

}  // namespace runnel::data
