#pragma once

// Internal: what a profile says, in numbers and in words. docs/profiling.md
#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/profile.h"

namespace runnel::io {

// Where the time of a step went. The parts add up to its length: what happens at once counts for the first part of
// these that it is of.
struct StepTimes {
  std::string name;  // "train"; "recording" where no step was marked and the whole is taken as one
  int64_t number = -1;
  int64_t begin_ns = 0, length_ns = 0;
  int64_t input_ns = 0;    // its thread waited for the input pipeline
  int64_t compute_ns = 0;  // at least one thread computed an op
  int64_t host_ns = 0;     // other work: running graphs, tracing, checkpoints, summaries, what the program marked
  int64_t idle_ns = 0;     // nothing was recorded
};

struct PartTimes {
  int64_t total_ns = 0, min_ns = 0, max_ns = 0;
};
// All steps of one name.
struct StepSummary {
  std::string name;
  int64_t count = 0;
  PartTimes length, compute, input, host, idle;
  size_t longest = 0;  // of all steps
};

// One row of the table of ops: calls of one name and type.
struct ProfiledOp {
  std::string name, type;
  profile::Kind kind = profile::Kind::op;
  int64_t calls = 0;
  int64_t total_ns = 0;  // a call inside a call of the same row counts once
  int64_t self_ns = 0;   // without what was called inside
  int64_t bytes = 0;
  double flops = 0;
  double flops_per_second() const { return total_ns > 0 ? flops * 1e9 / static_cast<double>(total_ns) : 0; }
  double bytes_per_second() const {
    return total_ns > 0 ? static_cast<double>(bytes) * 1e9 / static_cast<double>(total_ns) : 0;
  }
};

// Work around the ops, by kind: tracing, passes, checkpoints, summaries.
struct ProfiledWork {
  profile::Kind kind;
  int64_t calls = 0;
  int64_t total_ns = 0;  // inside of each other counted once
};

struct ProfiledStage {
  std::string path;       // from the consumer's side: "Prefetch::Batch::ParallelMap"
  int64_t elements = 0;   // that it produced
  int64_t own_ns = 0;     // without stages inside and without waiting for stages on other threads
  int64_t waited_ns = 0;  // that it waited for those
  int64_t threads = 0;
  double busy = 0;  // share of the recording in which its threads worked
};

struct ProfiledInput {
  int64_t waits = 0;                  // how often a step waited
  int64_t waited_ns = 0;              // of all steps
  double share = 0;                   // of the time of all steps
  std::vector<ProfiledStage> stages;  // as the elements go: the first feeds the next
  int64_t bottleneck = -1;            // of the stages; -1: no stage was recorded
  std::string words;                  // what limits, and what to do; empty where there is no pipeline
};

// How near a row comes to what the machine can do at best: the higher of its two shares. 0: not known.
struct PeakShare {
  double share = 0;
  bool of_flops = false;  // else of the memory's speed
};
RUNNEL_API PeakShare share_of_peak(const ProfiledOp& op, const MachinePeak& peak);

struct MemoryHolder {
  std::string op;  // empty: was there before the recording
  int64_t bytes = 0;
};
struct ProfiledMemory {
  int64_t start_bytes = 0, end_bytes = 0;
  int64_t peak_bytes = 0, peak_at_ns = 0;
  int64_t peak_step = -1;             // in which the peak was
  std::vector<MemoryHolder> holders;  // at the peak, the largest first
  std::vector<int64_t> chart;         // the highest in each of equal parts of the recording
};

struct ProfileReport {
  std::string host;
  int64_t started_unix_ns = 0, length_ns = 0;
  int64_t events = 0, threads = 0, lost = 0;
  MachinePeak peak;
  bool steps_marked = false;  // else the recording is taken as one step
  std::vector<StepTimes> steps;
  std::vector<StepSummary> summaries;  // in the order in which their first steps began
  std::vector<ProfiledOp> ops;         // by own time, the longest first
  std::vector<ProfiledWork> work;      // likewise
  ProfiledInput input;
  ProfiledMemory memory;
  bool has_memory = false;
};

RUNNEL_API ProfileReport make_profile_report(const profile::Recording& recording);

// "8.75 ms": three digits that count.
RUNNEL_API std::string profile_duration(int64_t ns);

// Tables for people, in lines of up to 120 characters; so many rows of ops.
RUNNEL_API std::string profile_report_text(const ProfileReport& report, size_t most_ops = 15);
// The same as one object.
RUNNEL_API std::string profile_report_json(const ProfileReport& report);

// The parts of a report; a column of the chart is as wide as a character.
inline constexpr size_t kMemoryChartColumns = 72;
ProfiledInput report_input(const profile::Recording& recording, const std::vector<StepTimes>& steps);
ProfiledMemory report_memory(const profile::Recording& recording, const std::vector<StepTimes>& steps);

}  // namespace runnel::io
