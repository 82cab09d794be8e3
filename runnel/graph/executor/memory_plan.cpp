#include "runnel/graph/executor/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace runnel {
namespace {

// Orders tried after the fixed ones while the plan is worse than it need be, and the work they may take together.
constexpr int kMostTries = 200;
constexpr int64_t kMostWork = 2'000'000;

int64_t aligned(int64_t bytes) { return (bytes + kMemoryAlign - 1) / kMemoryAlign * kMemoryAlign; }

// Places the requests in this order, each into the smallest gap that it fits among those placed before it.
class Placer {
 public:
  explicit Placer(const std::vector<MemoryRequest>& requests) : requests_(requests) {}

  MemoryPlan place(const std::vector<size_t>& order) const {
    MemoryPlan plan;
    plan.offsets.resize(requests_.size());
    std::vector<std::pair<int64_t, int64_t>> taken;  // of those that live at the same time: begin and end
    std::vector<size_t> placed;
    for (const size_t i : order) {
      const MemoryRequest& r = requests_[i];
      const int64_t bytes = aligned(r.bytes);
      taken.clear();
      for (const size_t k : placed) {
        const MemoryRequest& other = requests_[k];
        if (other.begin <= r.end && r.begin <= other.end) {
          taken.emplace_back(plan.offsets[k], plan.offsets[k] + aligned(other.bytes));
        }
      }
      std::sort(taken.begin(), taken.end());
      int64_t best = -1, best_gap = 0, free_from = 0;
      for (const auto& [begin, end] : taken) {
        const int64_t gap = begin - free_from;
        if (gap >= bytes && (best < 0 || gap < best_gap)) {
          best = free_from;
          best_gap = gap;
        }
        free_from = std::max(free_from, end);
      }
      plan.offsets[i] = best >= 0 ? best : free_from;
      plan.size = std::max(plan.size, plan.offsets[i] + bytes);
      placed.push_back(i);
    }
    return plan;
  }

 private:
  const std::vector<MemoryRequest>& requests_;
};

}  // namespace

int64_t largest_live(const std::vector<MemoryRequest>& requests) {
  std::map<int, int64_t> change;
  for (const MemoryRequest& r : requests) {
    change[r.begin] += r.bytes;
    change[r.end + 1] -= r.bytes;
  }
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests) {
  const size_t n = requests.size();
  if (n == 0) return {};
  std::vector<MemoryRequest> padded = requests;
  for (MemoryRequest& r : padded) r.bytes = aligned(r.bytes);
  const int64_t bound = largest_live(padded);
  const Placer placer(requests);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  MemoryPlan best;
  std::vector<size_t> best_order;
  const auto attempt = [&](const std::vector<size_t>& by) {
    MemoryPlan plan = placer.place(by);
    if (!best_order.empty() && plan.size >= best.size) return false;
    best = std::move(plan);
    best_order = by;
    return true;
  };
  const auto length = [&](size_t i) { return requests[i].end - requests[i].begin; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  attempt(order);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
  attempt(order);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].begin < requests[b].begin; });
  attempt(order);
  // Then what stands highest in the best plan so far goes earlier.
  uint32_t random = 12345;
  const auto work = static_cast<int64_t>(n) * static_cast<int64_t>(n);
  const auto tries = std::min<int64_t>(kMostTries, kMostWork / work);
  for (int64_t t = 0; t < tries && best.size > bound; ++t) {
    order = best_order;
    size_t top = 0;
    while (best.offsets[order[top]] + aligned(requests[order[top]].bytes) != best.size) ++top;
    random = random * 1664525u + 1013904223u;
    const size_t to = top == 0 ? n - 1 : (random >> 8) % top;
    const size_t moved = order[top];
    order.erase(order.begin() + static_cast<long>(top));
    order.insert(order.begin() + static_cast<long>(to), moved);
    attempt(order);
  }
  return best;
}

}  // namespace runnel
