#include "runnel/io/profile_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "runnel/io/profile_names.h"
#include "runnel/io/profile_nesting.h"
#include "runnel/io/profile_steps.h"

namespace runnel::io {
namespace {

// The parts of a step, the most important first.
enum class Part : uint8_t { input, compute, host, none };

Part part_of(profile::Kind kind) {
  switch (kind) {
    case profile::Kind::input_wait: return Part::input;
    case profile::Kind::op:
    case profile::Kind::node:
    case profile::Kind::chain:
    case profile::Kind::group: return Part::compute;
    case profile::Kind::run:
    case profile::Kind::tracing:
    case profile::Kind::pass:
    case profile::Kind::stage:
    case profile::Kind::checkpoint:
    case profile::Kind::summary:
    case profile::Kind::user: return Part::host;
    case profile::Kind::step: return Part::none;
  }
  return Part::none;
}

struct Stretch {
  int64_t begin, end;
};

// How much time at least one of them covers. Puts them in order.
int64_t covered(std::vector<Stretch>& stretches) {
  std::sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  int64_t total = 0, end = INT64_MIN;
  for (const Stretch& s : stretches) {
    if (s.end <= end) continue;
    total += s.end - std::max(s.begin, end);
    end = s.end;
  }
  return total;
}

// The thread that a recording without steps is about: the program's own.
uint32_t main_thread(const profile::Recording& recording) {
  for (size_t t = 0; t < recording.threads.size(); ++t) {
    if (recording.threads[t].name == "main") return static_cast<uint32_t>(t);
  }
  return recording.events.empty() ? 0 : recording.events.front().thread;
}

// The stretches of each step by part, and what they add up to.
class StepSums {
 public:
  StepSums(const profile::Recording& recording, const ProfileNesting& nesting)
      : recording_(recording), known_(recording) {
    for (const ProfileSteps::Step& s : known_.steps()) {
      steps_.push_back({.name = recording.events[s.event].name,
                        .number = s.number,
                        .begin_ns = s.begin_ns,
                        .length_ns = s.end_ns - s.begin_ns});
      threads_.push_back(s.thread);
    }
    if (steps_.empty()) {
      steps_.push_back({.name = "recording", .length_ns = recording.length_ns});
      threads_.push_back(main_thread(recording));
    }
    parts_.resize(steps_.size());
    take_events(nesting);
  }

  bool marked() const { return !known_.steps().empty(); }

  std::vector<StepTimes> times() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      std::vector<Stretch> sum;
      int64_t before = 0;
      const std::array<int64_t StepTimes::*, 3> fields = {&StepTimes::input_ns, &StepTimes::compute_ns,
                                                          &StepTimes::host_ns};
      for (size_t p = 0; p < fields.size(); ++p) {
        sum.insert(sum.end(), parts_[i][p].begin(), parts_[i][p].end());
        const int64_t with = covered(sum);
        steps_[i].*fields[p] = with - before;
        before = with;
      }
      steps_[i].idle_ns = steps_[i].length_ns - before;
    }
    return std::move(steps_);
  }

 private:
  void take_events(const ProfileNesting& nesting) {
    std::vector<bool> in_stage(recording_.events.size(), false);  // the work of a pipeline is no work of a step
    for (const size_t i : nesting.order) {
      const int64_t around = nesting.around[i];
      if (around >= 0) {
        const auto outer = static_cast<size_t>(around);
        in_stage[i] = in_stage[outer] || recording_.events[outer].kind == profile::Kind::stage;
      }
      const profile::Event& e = recording_.events[i];
      const Part part = part_of(e.kind);
      if (part == Part::none) continue;
      const int64_t step = known_.steps().empty() ? 0 : known_.of(e);
      if (step < 0) continue;
      const auto s = static_cast<size_t>(step);
      if (e.thread != threads_[s]) {
        // The work of a pipeline on its own threads is not the step's, nor, where no step is known, what they wait for.
        if (e.kind == profile::Kind::stage || in_stage[i] || (part == Part::input && !marked())) continue;
      }
      const int64_t begin = std::max(e.begin_ns, steps_[s].begin_ns);
      const int64_t end = std::min(e.end_ns, steps_[s].begin_ns + steps_[s].length_ns);
      if (begin < end) parts_[s][static_cast<size_t>(part)].push_back({begin, end});
    }
  }

  const profile::Recording& recording_;
  const ProfileSteps known_;
  std::vector<StepTimes> steps_;
  std::vector<uint32_t> threads_;
  std::vector<std::array<std::vector<Stretch>, 3>> parts_;
};

// Adds up the time of events of one sort, taken in order of begin; what lies inside of another of the sort on its
// thread counts once.
class OuterTime {
 public:
  void add(uint64_t sort, const profile::Event& e, int64_t* total) {
    int64_t& end = ends_[{sort, e.thread}];
    *total += std::max<int64_t>(e.end_ns - std::max(e.begin_ns, end), 0);
    end = std::max(end, e.end_ns);
  }

 private:
  std::map<std::pair<uint64_t, uint32_t>, int64_t> ends_;
};

std::vector<ProfiledOp> op_rows(const profile::Recording& recording, const ProfileNesting& nesting) {
  const std::vector<int64_t> own = own_times(recording, nesting);
  std::map<std::tuple<std::string_view, std::string_view, profile::Kind>, size_t> rows;
  std::vector<ProfiledOp> ops;
  OuterTime outer;
  for (const size_t i : nesting.order) {
    const profile::Event& e = recording.events[i];
    if (!is_op_kind(e.kind)) continue;
    const auto [at, added] = rows.try_emplace({e.name, e.op_type, e.kind}, ops.size());
    if (added) ops.push_back({.name = e.name, .type = e.op_type, .kind = e.kind});
    ProfiledOp& op = ops[at->second];
    ++op.calls;
    op.self_ns += own[i];
    op.bytes += e.bytes;
    op.flops += e.flops;
    outer.add(at->second, e, &op.total_ns);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.self_ns > b.self_ns; });
  return ops;
}

std::vector<ProfiledWork> work_rows(const profile::Recording& recording, const ProfileNesting& nesting) {
  std::vector<ProfiledWork> work;
  OuterTime outer;
  for (const profile::Kind kind :
       {profile::Kind::tracing, profile::Kind::pass, profile::Kind::checkpoint, profile::Kind::summary}) {
    ProfiledWork row{.kind = kind};
    for (const size_t i : nesting.order) {
      const profile::Event& e = recording.events[i];
      if (e.kind != kind) continue;
      ++row.calls;
      outer.add(static_cast<uint64_t>(kind), e, &row.total_ns);
    }
    if (row.calls > 0) work.push_back(row);
  }
  std::stable_sort(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  return work;
}

std::vector<StepSummary> summaries_of(const std::vector<StepTimes>& steps) {
  std::vector<StepSummary> all;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepTimes& step = steps[i];
    auto at = std::find_if(all.begin(), all.end(), [&](const StepSummary& s) { return s.name == step.name; });
    if (at == all.end()) at = all.insert(all.end(), {.name = step.name, .longest = i});
    if (step.length_ns > steps[at->longest].length_ns) at->longest = i;
    const auto add = [&](PartTimes& part, int64_t ns) {
      part.total_ns += ns;
      part.min_ns = at->count == 0 ? ns : std::min(part.min_ns, ns);
      part.max_ns = std::max(part.max_ns, ns);
    };
    add(at->length, step.length_ns);
    add(at->compute, step.compute_ns);
    add(at->input, step.input_ns);
    add(at->host, step.host_ns);
    add(at->idle, step.idle_ns);
    ++at->count;
  }
  return all;
}

}  // namespace

PeakShare share_of_peak(const ProfiledOp& op, const MachinePeak& peak) {
  if (!peak.known()) return {};
  const double flops = op.flops_per_second() / peak.flops_per_second;
  const double bytes = op.bytes_per_second() / peak.bytes_per_second;
  return {std::max(flops, bytes), flops >= bytes};
}

ProfileReport make_profile_report(const profile::Recording& recording) {
  const ProfileNesting nesting = nest_events(recording, [](const profile::Event&) { return true; });
  ProfileReport report;
  report.host = recording.host;
  report.started_unix_ns = recording.started_unix_ns;
  report.length_ns = recording.length_ns;
  report.events = static_cast<int64_t>(recording.events.size());
  report.threads = static_cast<int64_t>(recording.threads.size());
  report.lost = recording.lost;
  report.peak = recording.peak;
  StepSums sums(recording, nesting);
  report.steps_marked = sums.marked();
  report.steps = sums.times();
  report.summaries = summaries_of(report.steps);
  report.ops = op_rows(recording, nesting);
  report.work = work_rows(recording, nesting);
  report.input = report_input(recording, report.steps);
  report.has_memory = !recording.memory.empty();
  if (report.has_memory) report.memory = report_memory(recording, report.steps);
  return report;
}

}  // namespace runnel::io
