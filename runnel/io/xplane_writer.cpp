#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runnel/base/format.h"
#include "runnel/io/event.h"
#include "runnel/io/memory_pairs.h"
#include "runnel/io/profile_names.h"
#include "runnel/io/profile_steps.h"
#include "runnel/io/xplane.h"

namespace runnel::io {
namespace {

constexpr int64_t kPicoseconds = 1000;  // of a nanosecond

// One XPlane: names of events and statistics get numbers as they are met.
class PlaneWriter {
 public:
  explicit PlaneWriter(const profile::Recording& recording) : recording_(recording), steps_(recording) {}

  std::string bytes() {
    std::string plane;
    append_varint_field(plane, 1, 1);
    append_field(plane, 2, std::string_view(xplane::kHostPlane));
    number_stages();
    write_threads(plane);
    if (!recording_.memory.empty()) append_field(plane, 3, memory_line());
    const std::string stats = plane_stats();  // names them, so before the names are written
    for (const auto& [key, entry] : events_) append_named(plane, 4, entry.id, entry.bytes);
    for (const auto& [name, id] : stats_) {
      std::string entry;
      append_varint_field(entry, 1, id);
      append_field(entry, 2, std::string_view(name));
      append_named(plane, 5, id, entry);
    }
    return plane + stats;
  }

 private:
  struct EventName {
    uint64_t id;
    std::string bytes;  // XEventMetadata
  };

  // An entry of a map<int64, message>.
  static void append_named(std::string& out, uint32_t field, uint64_t id, const std::string& message) {
    std::string entry;
    append_varint_field(entry, 1, id);
    append_field(entry, 2, std::string_view(message));
    append_field(out, field, std::string_view(entry));
  }

  uint64_t stat_id(std::string_view name) {
    const auto at = stats_.find(name);
    if (at != stats_.end()) return at->second;
    return stats_.emplace(std::string(name), stats_.size() + 1).first->second;
  }

  // XStat, as a field of what it is about.
  void append_int(std::string& out, uint32_t field, std::string_view name, int64_t value) {
    std::string stat;
    append_varint_field(stat, 1, stat_id(name));
    append_varint_field(stat, 4, static_cast<uint64_t>(value));
    append_field(out, field, std::string_view(stat));
  }
  void append_double(std::string& out, uint32_t field, std::string_view name, double value) {
    std::string stat;
    append_varint_field(stat, 1, stat_id(name));
    append_field(stat, 2, value);
    append_field(out, field, std::string_view(stat));
  }
  void append_text(std::string& out, uint32_t field, std::string_view name, std::string_view value) {
    std::string stat;
    append_varint_field(stat, 1, stat_id(name));
    append_varint_field(stat, 7, stat_id(value));  // ref_value: texts that many events share are written once
    append_field(out, field, std::string_view(stat));
  }

  uint64_t event_id(const profile::Event& event) {
    const auto key = std::tuple(event.kind, event.name, event.op_type);
    const auto at = events_.find(key);
    if (at != events_.end()) return at->second.id;
    const uint64_t id = next_event_++;
    const std::string name = tensorflow_event_name(event);
    profile::Event said;
    take_tensorflow_name(name, &said);
    std::string bytes;
    append_varint_field(bytes, 1, id);
    append_field(bytes, 2, std::string_view(name));
    if (said.name != event.name) {
      append_field(bytes, 4, std::string_view(event.name));  // what the plugin shows in its place
      append_text(bytes, 5, "runnel_name", event.name);
    }
    append_text(bytes, 5, "runnel_kind", profile_kind_name(event.kind));
    if (said.op_type != event.op_type) append_text(bytes, 5, "runnel_op_type", event.op_type);
    events_.emplace(key, EventName{id, std::move(bytes)});
    return id;
  }
  // Of an event that is no profile::Event.
  uint64_t plain_event_id(const char* name) {
    const auto key = std::tuple(profile::Kind::user, std::string(1, '\0') + name, std::string());
    const auto at = events_.find(key);
    if (at != events_.end()) return at->second.id;
    const uint64_t id = next_event_++;
    std::string bytes;
    append_varint_field(bytes, 1, id);
    append_field(bytes, 2, std::string_view(name));
    events_.emplace(key, EventName{id, std::move(bytes)});
    return id;
  }

  // "A::B" is fed by nothing and feeds "A": the plugin knows that by numbers.
  void number_stages() {
    for (const profile::Event& e : recording_.events) {
      if (e.kind == profile::Kind::stage) stages_.try_emplace(e.name, 0);
    }
    int64_t next = 1;
    for (auto& [name, number] : stages_) number = next++;
  }
  int64_t consumer_of(const std::string& stage) const {
    const size_t cut = stage.rfind("::");
    if (cut == std::string::npos) return 0;
    const auto at = stages_.find(stage.substr(0, cut));
    return at == stages_.end() ? 0 : at->second;
  }

  void append_event(std::string& line, const profile::Event& e) {
    std::string bytes;
    append_varint_field(bytes, 1, event_id(e));
    append_varint_field(bytes, 2, static_cast<uint64_t>(e.begin_ns * kPicoseconds));
    append_varint_field(bytes, 3, static_cast<uint64_t>((e.end_ns - e.begin_ns) * kPicoseconds));
    // The plugin works out the times of a step from all events of its group: waiting for input, else computing.
    const bool counts = is_op_kind(e.kind) || e.kind == profile::Kind::group || e.kind == profile::Kind::input_wait ||
                        e.kind == profile::Kind::step;
    const int64_t group = counts ? steps_.of(e) : -1;
    if (group >= 0) append_int(bytes, 4, "group_id", group);
    if (e.kind == profile::Kind::step) {
      append_int(bytes, 4, "step_num", e.step);
      append_int(bytes, 4, "_r", 1);
      if (group >= 0) append_text(bytes, 4, "step_name", fmt::format("{} {}", e.name, e.step));
    } else if (e.step >= 0) {
      append_int(bytes, 4, "step", e.step);
    }
    if (e.kind == profile::Kind::stage) {
      append_int(bytes, 4, "id", stages_.at(e.name));
      append_int(bytes, 4, "parent_id", consumer_of(e.name));
    }
    if (e.bytes != 0) append_int(bytes, 4, "bytes_accessed", e.bytes);
    if (e.flops != 0) append_double(bytes, 4, "flops", e.flops);
    if (!e.detail.empty()) append_text(bytes, 4, is_op_kind(e.kind) ? "shapes" : "detail", e.detail);
    append_field(line, 4, std::string_view(bytes));
  }

  void write_threads(std::string& plane) {
    std::vector<std::vector<size_t>> of_thread(recording_.threads.size());
    for (size_t i = 0; i < recording_.events.size(); ++i) {
      const profile::Event& e = recording_.events[i];
      if (e.thread >= of_thread.size()) {
        throw make_error(Code::internal, "[profile] the event '{}' is of thread {}, and there are {}", e.name, e.thread,
                         of_thread.size());
      }
      of_thread[e.thread].push_back(i);
    }
    for (size_t t = 0; t < of_thread.size(); ++t) {
      const profile::Thread& thread = recording_.threads[t];
      std::string line;
      const uint64_t id = free_line(thread.id);
      append_varint_field(line, 1, id);
      append_field(line, 2, std::string_view(thread.name));
      append_varint_field(line, 3, 0);
      for (const size_t i : of_thread[t]) append_event(line, recording_.events[i]);
      if (id != thread.id) append_varint_field(line, 10, thread.id);  // display_id
      append_field(plane, 3, std::string_view(line));
    }
  }
  // The system uses numbers of threads again, the plugin wants each once. UINT32_MAX is the line of memory.
  uint64_t free_line(uint64_t wanted) {
    for (uint64_t other = UINT32_MAX - 1; !lines_.insert(wanted).second; --other) wanted = other;
    return wanted;
  }

  std::string memory_line() {
    std::string line;
    append_varint_field(line, 1, free_line(UINT32_MAX));
    append_field(line, 2, std::string_view(xplane::kMemoryLine));
    append_varint_field(line, 3, 0);
    const std::vector<MemoryChange> changes = pair_memory(recording_.memory);
    int64_t peak = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      const profile::MemorySample& sample = recording_.memory[i];
      const int64_t bytes = i == 0 ? sample.live_bytes : changes[i].bytes;
      peak = std::max(peak, sample.live_bytes);
      std::string event;
      append_varint_field(event, 1, plain_event_id(bytes >= 0 ? xplane::kAllocation : xplane::kRelease));
      append_varint_field(event, 2, static_cast<uint64_t>(sample.at_ns * kPicoseconds));
      append_varint_field(event, 3, 0);
      append_text(event, 4, "allocator_name", "cpu");
      append_int(event, 4, "bytes_reserved", 0);
      append_int(event, 4, "bytes_allocated", sample.live_bytes);
      append_int(event, 4, "bytes_available", 0);
      append_double(event, 4, "fragmentation", 0);
      append_int(event, 4, "peak_bytes_in_use", peak);
      append_int(event, 4, "requested_bytes", std::abs(bytes));
      append_int(event, 4, "allocation_bytes", std::abs(bytes));
      // No address is known; the plugin only compares them.
      const int64_t allocation = bytes >= 0 || changes[i].partner < 0 ? static_cast<int64_t>(i) : changes[i].partner;
      append_int(event, 4, "addr", 64 * (allocation + 1));
      if (!sample.op.empty()) append_text(event, 4, "tf_op", sample.op);
      append_field(line, 4, std::string_view(event));
    }
    return line;
  }

  std::string plane_stats() {
    std::string out;
    append_int(out, 6, "profile_start_time", recording_.started_unix_ns);
    append_int(out, 6, "profile_stop_time", recording_.started_unix_ns + recording_.length_ns);
    if (recording_.lost != 0) append_int(out, 6, "lost_events", recording_.lost);
    if (recording_.peak.known()) {
      append_double(out, 6, "peak_flops_per_second", recording_.peak.flops_per_second);
      append_double(out, 6, "peak_bytes_per_second", recording_.peak.bytes_per_second);
    }
    return out;
  }

  const profile::Recording& recording_;
  const ProfileSteps steps_;
  std::map<std::tuple<profile::Kind, std::string, std::string>, EventName> events_;
  uint64_t next_event_ = 1;
  std::map<std::string, uint64_t, std::less<>> stats_;
  std::map<std::string, int64_t> stages_;
  std::set<uint64_t> lines_;
};

}  // namespace

std::string xspace_bytes(const profile::Recording& recording) {
  std::string space;
  append_field(space, 1, PlaneWriter(recording).bytes());
  if (recording.lost != 0) {
    append_field(space, 3, fmt::format("{} events found no room and are not in the profile.", recording.lost));
  }
  append_field(space, 4, std::string_view(recording.host));
  return space;
}

}  // namespace runnel::io
