#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "runnel/base/format.h"
#include "runnel/io/profile_nesting.h"
#include "runnel/io/profile_report.h"

namespace runnel::io {
namespace {

// Shares of the time of steps from which the input counts as a limit, as in TensorBoard.
constexpr double kSomewhat = 0.05, kMostly = 0.2;
// Stages that are nearly as busy: the one that others wait for is the limit.
constexpr double kNearly = 0.9;

size_t depth_of(const std::string& path) {
  size_t depth = 0;
  for (size_t at = path.find("::"); at != std::string::npos; at = path.find("::", at + 2)) ++depth;
  return depth;
}

// "Prefetch::Batch::ParallelMapV2[0]": ParallelMapV2. What stands in brackets tells inputs apart.
std::string last_part(const std::string& path) {
  const size_t cut = path.rfind("::");
  const std::string part = cut == std::string::npos ? path : path.substr(cut + 2);
  return part.substr(0, part.find_first_of("[("));
}

// Of the event of a stage: "input.cpp:12, 32 elements", as data/stage_event.h writes it; 1 where none are told.
int64_t elements_of(const profile::Event& stage) {
  constexpr std::string_view unit = " elements";
  std::string_view text = stage.detail;
  if (!text.ends_with(unit)) return 1;
  text.remove_suffix(unit.size());
  text = text.substr(text.rfind(' ') + 1);
  uint32_t elements = 0;  // of no more bits: the sum over all events has room
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, elements);
  return read.ec == std::errc() && read.ptr == end ? elements : 1;
}

std::vector<ProfiledStage> stage_rows(const profile::Recording& recording) {
  const ProfileNesting nesting = nest_events(recording, [](const profile::Event& e) {
    return e.kind == profile::Kind::stage || e.kind == profile::Kind::input_wait;
  });
  const std::vector<int64_t> own = own_times(recording, nesting);
  std::map<std::string, ProfiledStage> rows;
  std::map<std::string, std::set<uint32_t>> threads;
  for (const size_t i : nesting.order) {
    const profile::Event& e = recording.events[i];
    if (e.kind == profile::Kind::stage) {
      ProfiledStage& row = rows[e.name];
      row.path = e.name;
      row.elements += elements_of(e);
      row.own_ns += own[i];
      threads[e.name].insert(e.thread);
    } else if (nesting.around[i] >= 0) {
      const profile::Event& outer = recording.events[static_cast<size_t>(nesting.around[i])];
      if (outer.kind == profile::Kind::stage) rows[outer.name].waited_ns += e.end_ns - e.begin_ns;
    }
  }
  std::vector<ProfiledStage> stages;
  for (auto& [path, row] : rows) {
    row.threads = static_cast<int64_t>(threads[path].size());
    const auto time = static_cast<double>(recording.length_ns * row.threads);
    row.busy = time > 0 ? static_cast<double>(row.own_ns) / time : 0;
    stages.push_back(std::move(row));
  }
  std::stable_sort(stages.begin(), stages.end(),
                   [](const auto& a, const auto& b) { return depth_of(a.path) > depth_of(b.path); });
  return stages;
}

// The stage whose threads work most of the time.
int64_t busiest(const std::vector<ProfiledStage>& stages) {
  double most = 0;
  const auto counts = [](const ProfiledStage& s) {
    return s.own_ns > 0 && s.path != "Model";  // the root of TensorFlow's pipelines: it only waits for the others
  };
  for (const ProfiledStage& s : stages) {
    if (counts(s)) most = std::max(most, s.busy);
  }
  for (size_t i = 0; i < stages.size(); ++i) {  // the deepest come first
    if (counts(stages[i]) && stages[i].busy >= most * kNearly) return static_cast<int64_t>(i);
  }
  return -1;
}

// What makes a stage of this kind faster, as a clause after "To do: ".
std::string advice(const std::string& stage) {
  const auto has = [&](std::string_view part) { return stage.find(part) != std::string::npos; };
  if (has("ParallelMap")) {
    return "make the function of this map cheaper, give it more threads, or put cache() behind it";
  }
  if (has("Map") && !has("FlatMap")) {
    return "call its function on several threads with map(f, data::AUTOTUNE), or put cache() behind it";
  }
  if (has("ParallelBatch")) return "put batch() before map(), so that fewer and larger elements pass";
  if (has("Batch")) return "batch on several threads with batch(size, {.num_parallel_calls = data::AUTOTUNE})";
  if (has("Shuffle"))
    return "shuffle before the elements become large (before map() and batch()), with a smaller buffer";
  if (has("Interleave")) return "read several files at a time with {.num_parallel_calls = data::AUTOTUNE}";
  if (has("Generator")) return "make the generator cheaper: it runs on one thread; or put cache() behind it";
  for (const char* source : {"Record", "TextLine", "Csv", "File"}) {
    if (has(source)) return "read several files at a time (num_parallel_reads, interleave()), or put cache() behind it";
  }
  return "put cache() behind it if its elements fit into memory";
}

bool has_prefetch(const profile::Recording& recording) {
  return std::any_of(recording.events.begin(), recording.events.end(), [](const profile::Event& e) {
    return (e.kind == profile::Kind::stage || e.kind == profile::Kind::input_wait) &&
           e.name.find("Prefetch") != std::string::npos;
  });
}

std::string words_for(const ProfiledInput& input, const profile::Recording& recording, size_t steps) {
  if (input.waits == 0 && input.stages.empty()) return "";
  const int64_t each = steps > 0 ? input.waited_ns / static_cast<int64_t>(steps) : 0;
  std::string words;
  if (input.share < kSomewhat) {
    return fmt::format("The input keeps up: a step waits {} for it, {:.1f}% of its time.", profile_duration(each),
                       input.share * 100);
  }
  words = fmt::format("The steps wait for input{}: {} each, {:.0f}% of their time.",
                      input.share < kMostly ? ", somewhat" : "", profile_duration(each), input.share * 100);
  const bool prefetches = has_prefetch(recording);
  const std::string prefetch = "end the pipeline with prefetch(data::AUTOTUNE), so that it works while a step computes";
  if (input.bottleneck < 0) {
    words += " No stage of the pipeline was recorded.";
    return prefetches ? words : words + " To do: " + prefetch + ".";
  }
  const ProfiledStage& stage = input.stages[static_cast<size_t>(input.bottleneck)];
  const std::string name = last_part(stage.path);
  words += fmt::format(" The slowest stage is {}{}: {} for each element on {} thread{}, busy {:.0f}% of the time.",
                       name, name == stage.path ? "" : fmt::format(" ({})", stage.path),
                       profile_duration(stage.own_ns / std::max<int64_t>(stage.elements, 1)), stage.threads,
                       stage.threads == 1 ? "" : "s", stage.busy * 100);
  words += " To do: ";
  if (!prefetches) return words + prefetch + "; then " + advice(name) + ".";
  if (stage.busy < input.share / 2) {
    return words +
           "find out what its threads wait for: they do not work most of the time in which the steps wait. It may be a "
           "processor (other programs, fewer of them than threads), files or locks.";
  }
  return words + advice(name) + ".";
}

}  // namespace

ProfiledInput report_input(const profile::Recording& recording, const std::vector<StepTimes>& steps) {
  ProfiledInput input;
  int64_t length = 0;
  for (const StepTimes& step : steps) {
    input.waited_ns += step.input_ns;
    length += step.length_ns;
    if (step.input_ns > 0) ++input.waits;
  }
  input.share = length > 0 ? static_cast<double>(input.waited_ns) / static_cast<double>(length) : 0;
  input.stages = stage_rows(recording);
  input.bottleneck = busiest(input.stages);
  input.words = words_for(input, recording, steps.size());
  return input;
}

}  // namespace runnel::io
