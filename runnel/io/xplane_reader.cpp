#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "runnel/base/format.h"
#include "runnel/io/profile_builder.h"
#include "runnel/io/profile_names.h"
#include "runnel/io/wire.h"
#include "runnel/io/xplane.h"

namespace runnel::io {
namespace {

using wire::Cursor;
using wire::tag;

// The statistics that are read; the names are TensorFlow's, and ours.
enum class StatName : uint8_t {
  other,
  kind,
  name,
  op_type,
  group_id,
  step,
  step_num,
  step_name,
  root,
  gives_type,
  gives_id,
  takes_type,
  takes_id,
  bytes,
  flops,
  detail,
  live_bytes,
  memory_op,
  started,
  stopped,
  lost,
  peak_flops,
  peak_bytes,
};
const std::unordered_map<std::string_view, StatName>& stat_names() {
  static const std::unordered_map<std::string_view, StatName> names = {
      {"runnel_kind", StatName::kind},
      {"runnel_name", StatName::name},
      {"runnel_op_type", StatName::op_type},
      {"group_id", StatName::group_id},
      {"step", StatName::step},
      {"step_num", StatName::step_num},
      {"step_name", StatName::step_name},
      {"_r", StatName::root},
      {"_pt", StatName::gives_type},
      {"_p", StatName::gives_id},
      {"_ct", StatName::takes_type},
      {"_c", StatName::takes_id},
      {"bytes_accessed", StatName::bytes},
      {"flops", StatName::flops},
      {"shapes", StatName::detail},
      {"detail", StatName::detail},
      {"bytes_allocated", StatName::live_bytes},
      {"tf_op", StatName::memory_op},
      {"profile_start_time", StatName::started},
      {"profile_stop_time", StatName::stopped},
      {"lost_events", StatName::lost},
      {"peak_flops_per_second", StatName::peak_flops},
      {"peak_bytes_per_second", StatName::peak_bytes},
  };
  return names;
}

struct Stat {
  StatName name = StatName::other;
  int64_t integer = 0;
  double number = 0;
  std::string_view text;
};

class SpaceReader {
 public:
  SpaceReader(std::string_view bytes, const std::string& path) : bytes_(bytes), builder_(path, bytes.size()) {}

  profile::Recording read() {
    each_field(bytes_, [&](uint32_t t, Cursor& c) {
      std::string_view text;
      if (t == tag(1, wire::kBytes)) {
        if (!c.bytes(&text)) return false;
        read_plane(text);
        return true;
      }
      if (t == tag(4, wire::kBytes)) {
        if (!c.bytes(&text)) return false;
        if (recording_.host.empty()) recording_.host = text;
        return true;
      }
      return c.skip(t);
    });
    for (const Plane& plane : planes_) {
      for (const std::string_view line : plane.lines) read_line(plane, line);
    }
    if (stopped_ > recording_.started_unix_ns && recording_.started_unix_ns > 0) {
      recording_.length_ns = stopped_ - recording_.started_unix_ns;
    }
    builder_.finish(&recording_, !ours_);
    return std::move(recording_);
  }

 private:
  struct EventName {
    std::string_view text;
    profile::Event event;  // what the name says
    std::vector<Stat> stats;
    bool memory = false;  // no event, but a change of memory
  };
  struct Plane {
    std::string_view name;
    std::unordered_map<uint64_t, EventName> events;
    std::unordered_map<uint64_t, std::string_view> stats;
    std::vector<std::string_view> lines;
    std::vector<std::string_view> own_stats;
  };

  uint64_t offset(const char* p) const { return static_cast<uint64_t>(p - bytes_.data()); }
  [[noreturn]] void fail(const char* at, const std::string& what) const { builder_.fail(offset(at), what); }

  // Calls take(tag, cursor) for each field, which reads it; false where the field makes no sense.
  template <class Take>
  void each_field(std::string_view message, Take&& take) {
    Cursor c(message);
    while (!c.done()) {
      const char* at = c.p;
      uint32_t t = 0;
      if (!c.tag(&t) || !take(t, c)) fail(at, "no XSpace message, or a damaged one");
    }
  }

  static bool integer(Cursor& c, int64_t* v) {
    uint64_t bits = 0;
    if (!c.varint(&bits)) return false;
    *v = static_cast<int64_t>(bits);
    return true;
  }

  // An entry of a map from int64 to a message.
  void map_entry(std::string_view entry, uint64_t* key, std::string_view* message) {
    each_field(entry, [&](uint32_t t, Cursor& c) {
      if (t == tag(1, wire::kVarint)) return c.varint(key);
      if (t == tag(2, wire::kBytes)) return c.bytes(message);
      return c.skip(t);
    });
  }

  void read_plane(std::string_view bytes) {
    Plane plane;
    std::vector<std::pair<uint64_t, std::string_view>> event_names;
    each_field(bytes, [&](uint32_t t, Cursor& c) {
      std::string_view text, message;
      uint64_t key = 0;
      switch (t) {
        case tag(2, wire::kBytes): return c.bytes(&plane.name);
        case tag(3, wire::kBytes):
        case tag(4, wire::kBytes):
        case tag(5, wire::kBytes):
        case tag(6, wire::kBytes): break;
        default: return c.skip(t);
      }
      if (!c.bytes(&text)) return false;
      if (t == tag(3, wire::kBytes)) plane.lines.push_back(text);
      if (t == tag(6, wire::kBytes)) plane.own_stats.push_back(text);
      if (t == tag(4, wire::kBytes)) {
        map_entry(text, &key, &message);
        event_names.emplace_back(key, message);
      }
      if (t == tag(5, wire::kBytes)) {
        map_entry(text, &key, &message);
        std::string_view& name = plane.stats[key];
        each_field(message, [&](uint32_t field, Cursor& m) {
          return field == tag(2, wire::kBytes) ? m.bytes(&name) : m.skip(field);
        });
      }
      return true;
    });
    for (const auto& [key, message] : event_names) read_event_name(plane, message, &plane.events[key]);
    for (const std::string_view stat : plane.own_stats) take_plane_stat(read_stat(plane, stat));
    planes_.push_back(std::move(plane));
  }

  Stat read_stat(const Plane& plane, std::string_view bytes) {
    Stat stat;
    each_field(bytes, [&](uint32_t t, Cursor& c) {
      uint64_t bits = 0;
      switch (t) {
        case tag(1, wire::kVarint): {
          if (!c.varint(&bits)) return false;
          const auto name = plane.stats.find(bits);
          if (name == plane.stats.end()) return true;
          const auto known = stat_names().find(name->second);
          if (known != stat_names().end()) stat.name = known->second;
          return true;
        }
        case tag(2, wire::kFixed64): {
          const char* next = get_fixed64(c.p, c.end, &bits);
          if (next == nullptr) return false;
          c.p = next;
          stat.number = std::bit_cast<double>(bits);
          if (stat.number >= -0x1p63 && stat.number < 0x1p63) stat.integer = static_cast<int64_t>(stat.number);
          return true;
        }
        case tag(3, wire::kVarint):
          if (!c.varint(&bits)) return false;
          stat.integer = static_cast<int64_t>(std::min<uint64_t>(bits, std::numeric_limits<int64_t>::max()));
          stat.number = static_cast<double>(bits);
          return true;
        case tag(4, wire::kVarint):
          if (!integer(c, &stat.integer)) return false;
          stat.number = static_cast<double>(stat.integer);
          return true;
        case tag(5, wire::kBytes): return c.bytes(&stat.text);
        case tag(7, wire::kVarint): {
          if (!c.varint(&bits)) return false;
          const auto text = plane.stats.find(bits);
          if (text != plane.stats.end()) stat.text = text->second;
          return true;
        }
        default: return c.skip(t);
      }
    });
    return stat;
  }

  void read_event_name(const Plane& plane, std::string_view message, EventName* out) {
    each_field(message, [&](uint32_t t, Cursor& c) {
      std::string_view text;
      if (t == tag(2, wire::kBytes)) return c.bytes(&out->text);
      if (t != tag(5, wire::kBytes)) return c.skip(t);
      if (!c.bytes(&text)) return false;
      out->stats.push_back(read_stat(plane, text));
      return true;
    });
    take_tensorflow_name(out->text, &out->event);
    out->memory = out->text == xplane::kAllocation || out->text == xplane::kRelease;
    for (const Stat& stat : out->stats) {
      if (stat.name == StatName::kind) out->memory = false;  // a program may call its own work so
      if (stat.name == StatName::kind) ours_ = profile_kind_from_name(stat.text, &out->event.kind) || ours_;
      if (stat.name == StatName::name) out->event.name = stat.text;
      if (stat.name == StatName::op_type) out->event.op_type = stat.text;
    }
  }

  void take_plane_stat(const Stat& stat) {
    switch (stat.name) {
      case StatName::started: recording_.started_unix_ns = std::max<int64_t>(stat.integer, 0); break;
      case StatName::stopped: stopped_ = stat.integer; break;
      case StatName::lost: recording_.lost = std::max<int64_t>(stat.integer, 0); break;
      case StatName::peak_flops: recording_.peak.flops_per_second = positive(stat.number); break;
      case StatName::peak_bytes: recording_.peak.bytes_per_second = positive(stat.number); break;
      default: break;
    }
  }
  static double positive(double v) { return std::isfinite(v) && v > 0 ? v : 0; }

  void read_line(const Plane& plane, std::string_view bytes) {
    std::string_view name, display_name;
    int64_t id = 0, display_id = 0, begin_ns = 0;
    std::vector<std::string_view> events;
    each_field(bytes, [&](uint32_t t, Cursor& c) {
      switch (t) {
        case tag(1, wire::kVarint): return integer(c, &id);
        case tag(2, wire::kBytes): return c.bytes(&name);
        case tag(3, wire::kVarint): return integer(c, &begin_ns);
        case tag(4, wire::kBytes): events.emplace_back(); return c.bytes(&events.back());
        case tag(10, wire::kVarint): return integer(c, &display_id);
        case tag(11, wire::kBytes): return c.bytes(&display_name);
        default: return c.skip(t);
      }
    });
    const bool for_memory = name == xplane::kMemoryLine && id == UINT32_MAX;
    profile::Thread thread{static_cast<uint32_t>(display_id != 0 ? display_id : id),
                           std::string(display_name.empty() ? name : display_name)};
    if (thread.name.empty()) thread.name = fmt::format("thread {}", id);
    if (plane.name != xplane::kHostPlane) thread.name = fmt::format("{} {}", plane.name, thread.name);
    const auto number = static_cast<uint32_t>(recording_.threads.size());
    recording_.threads.push_back(std::move(thread));
    const uint64_t before = events_read_;
    for (const std::string_view event : events) read_event(plane, event, begin_ns, number);
    if (for_memory && events_read_ == before) recording_.threads.pop_back();  // no thread, as long as nothing ran there
  }

  void read_event(const Plane& plane, std::string_view bytes, int64_t line_ns, uint32_t thread) {
    const char* at = bytes.data();
    uint64_t name_id = 0;
    int64_t offset_ps = 0, length_ps = 0;
    bool timed = true;
    std::vector<std::string_view>& stats = stats_of_event_;
    stats.clear();
    each_field(bytes, [&](uint32_t t, Cursor& c) {
      switch (t) {
        case tag(1, wire::kVarint): return c.varint(&name_id);
        case tag(2, wire::kVarint): return integer(c, &offset_ps);
        case tag(3, wire::kVarint): return integer(c, &length_ps);
        case tag(4, wire::kBytes): stats.emplace_back(); return c.bytes(&stats.back());
        case tag(5, wire::kVarint): timed = false; return c.skip(t);  // a count of many events, without times
        default: return c.skip(t);
      }
    });
    if (!timed) return;
    const auto name = plane.events.find(name_id);
    if (name == plane.events.end())
      fail(at, fmt::format("an event has the name {}, which the plane does not give", name_id));
    int64_t end_ps = 0, begin_ns = 0, end_ns = 0;
    if (offset_ps < 0 || length_ps < 0 || __builtin_add_overflow(offset_ps, length_ps, &end_ps) ||
        __builtin_add_overflow(line_ns, offset_ps / 1000, &begin_ns) ||
        __builtin_add_overflow(line_ns, end_ps / 1000, &end_ns) || begin_ns < 0) {
      fail(at, fmt::format("an event of {} ps begins at {} ps after {} ns", length_ps, offset_ps, line_ns));
    }
    if (name->second.memory) {
      take_memory(plane, stats, begin_ns, at);
      return;
    }
    profile::Event event = name->second.event;
    event.thread = thread;
    event.begin_ns = begin_ns;
    event.end_ns = end_ns;
    ProfileMarks marks;
    EventStep step;
    for (const Stat& stat : name->second.stats) take_event_stat(stat, &event, &marks, &step);
    for (const std::string_view text : stats) take_event_stat(read_stat(plane, text), &event, &marks, &step);
    if (!ours_ && (step.named || (step.root && event.step >= 0))) {
      event.kind = profile::Kind::step;
      if (event.step < 0) event.step = marks.group;
    }
    builder_.add(std::move(event), marks, offset(at));
    ++events_read_;
  }

  struct EventStep {
    bool root = false, named = false;
  };
  static void take_event_stat(const Stat& stat, profile::Event* event, ProfileMarks* marks, EventStep* step) {
    switch (stat.name) {
      case StatName::group_id: marks->group = stat.integer; break;
      case StatName::step:
      case StatName::step_num: event->step = std::max<int64_t>(stat.integer, -1); break;
      case StatName::step_name: step->named = true; break;
      case StatName::root: step->root = true; break;
      case StatName::gives_type: marks->gives_type = stat.integer; break;
      case StatName::gives_id: marks->gives_id = stat.integer; break;
      case StatName::takes_type: marks->takes_type = stat.integer; break;
      case StatName::takes_id: marks->takes_id = stat.integer; break;
      case StatName::bytes: event->bytes = profile_bytes(stat.integer); break;
      case StatName::flops: event->flops = positive(stat.number); break;
      case StatName::detail: event->detail = stat.text; break;
      default: break;
    }
  }

  void take_memory(const Plane& plane, const std::vector<std::string_view>& stats, int64_t at_ns, const char* at) {
    profile::MemorySample sample{.at_ns = at_ns};
    for (const std::string_view text : stats) {
      const Stat stat = read_stat(plane, text);
      if (stat.name == StatName::live_bytes) sample.live_bytes = profile_bytes(stat.integer);
      if (stat.name == StatName::memory_op) sample.op = stat.text;
    }
    builder_.count_text(sample.op.size(), offset(at));
    recording_.memory.push_back(std::move(sample));
  }

  std::string_view bytes_;
  ProfileBuilder builder_;
  profile::Recording recording_;
  bool ours_ = false;
  std::vector<Plane> planes_;
  int64_t stopped_ = 0;
  uint64_t events_read_ = 0;
  std::vector<std::string_view> stats_of_event_;  // one buffer for all
};

}  // namespace

profile::Recording parse_xspace(std::string_view bytes, const std::string& path) {
  return SpaceReader(bytes, path).read();
}

}  // namespace runnel::io
