#include <algorithm>
#include <map>

#include "runnel/io/memory_pairs.h"
#include "runnel/io/profile_report.h"

namespace runnel::io {
namespace {

// The highest in each part of the recording; where nothing changes, what was there before.
std::vector<int64_t> chart_of(const profile::Recording& recording, size_t columns) {
  const std::vector<profile::MemorySample>& samples = recording.memory;
  std::vector<int64_t> chart;
  size_t next = 0;
  int64_t live = samples.front().live_bytes;
  for (size_t c = 0; c < columns; ++c) {
    const double end =
        static_cast<double>(recording.length_ns) * static_cast<double>(c + 1) / static_cast<double>(columns);
    int64_t highest = live;
    for (; next < samples.size() && (static_cast<double>(samples[next].at_ns) < end || c + 1 == columns); ++next) {
      live = samples[next].live_bytes;
      highest = std::max(highest, live);
    }
    chart.push_back(highest);
  }
  return chart;
}

}  // namespace

ProfiledMemory report_memory(const profile::Recording& recording, const std::vector<StepTimes>& steps) {
  const std::vector<profile::MemorySample>& samples = recording.memory;
  ProfiledMemory memory;
  memory.start_bytes = samples.front().live_bytes;
  memory.end_bytes = samples.back().live_bytes;
  const auto peak = std::max_element(samples.begin(), samples.end(),
                                     [](const auto& a, const auto& b) { return a.live_bytes < b.live_bytes; });
  memory.peak_bytes = peak->live_bytes;
  memory.peak_at_ns = peak->at_ns;
  for (const StepTimes& step : steps) {
    if (step.begin_ns <= peak->at_ns && peak->at_ns < step.begin_ns + step.length_ns) memory.peak_step = step.number;
  }

  // What was allocated before the peak and not released until then. A release that fits no allocation gives back what
  // was there before, and then the oldest.
  const std::vector<MemoryChange> changes = pair_memory(samples);
  const auto at = static_cast<size_t>(peak - samples.begin());
  int64_t before = memory.start_bytes;
  for (size_t i = 1; i <= at; ++i) {
    if (changes[i].bytes < 0 && changes[i].partner < 0) before += changes[i].bytes;
  }
  std::map<std::string, int64_t> held;
  for (size_t i = 1; i <= at; ++i) {
    int64_t bytes = changes[i].bytes;
    if (bytes <= 0 || (changes[i].partner >= 0 && static_cast<size_t>(changes[i].partner) <= at)) continue;
    if (before < 0) {
      const int64_t gone = std::min(bytes, -before);
      before += gone;
      bytes -= gone;
    }
    if (bytes > 0) held[samples[i].op.empty() ? "(no op)" : samples[i].op] += bytes;
  }
  if (before > 0) memory.holders.push_back({.bytes = before});
  for (const auto& [op, bytes] : held) memory.holders.push_back({op, bytes});
  std::stable_sort(memory.holders.begin(), memory.holders.end(),
                   [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
  memory.chart = chart_of(recording, kMemoryChartColumns);
  return memory;
}

}  // namespace runnel::io
