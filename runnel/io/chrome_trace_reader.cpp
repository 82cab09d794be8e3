#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "runnel/base/format.h"
#include "runnel/io/chrome_trace.h"
#include "runnel/io/profile_builder.h"
#include "runnel/io/profile_names.h"

namespace runnel::io {
namespace {

using TraceJson = nlohmann::json;

constexpr int kDeepest = 16;  // of JSON in JSON; real traces have five

// Of what the trace holds under this name, the number: TensorFlow writes some as text. False where there is none.
bool number_at(const TraceJson& object, const char* name, double* out) {
  const auto at = object.find(name);
  if (at == object.end()) return false;
  if (at->is_number()) {
    *out = at->get<double>();
  } else if (at->is_string()) {
    const auto& text = at->get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
    if (error != std::errc() || end != text.data() + text.size()) return false;
  } else {
    return false;
  }
  return std::isfinite(*out);
}
bool integer_at(const TraceJson& object, const char* name, int64_t* out) {
  const auto at = object.find(name);
  if (at == object.end()) return false;
  if (at->is_number_integer()) {
    *out = at->get<int64_t>();
    return true;
  }
  double number = 0;
  if (!number_at(object, name, &number) || std::abs(number) >= 0x1p62) return false;
  *out = static_cast<int64_t>(number);
  return true;
}
bool text_at(const TraceJson& object, const char* name, std::string* out) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_string()) return false;
  *out = at->get<std::string>();
  return true;
}

class TraceReader {
 public:
  TraceReader(std::string_view json, const std::string& path) : json_(json), path_(path), builder_(path, json.size()) {}

  profile::Recording read() {
    try {
      bool list_found = false;
      const TraceJson rest =
          TraceJson::parse(json_.begin(), json_.end(), [&](int depth, Parse event, TraceJson& value) {
            if (depth > kDeepest) fail("JSON that is nested too deep for a trace");
            if (event == Parse::key && depth == 1) key_ = value.get<std::string>();
            // A trace is a list of events, or an object that has one. Events are taken as they come, and let go.
            const bool in_list = depth == 1 ? key_.empty() : depth == 2 && key_ == "traceEvents";
            if (event == Parse::array_start && (depth == 0 || (depth == 1 && key_ == "traceEvents"))) list_found = true;
            if (event != Parse::object_end || !in_list) return true;
            take(value);
            ++count_;
            return false;
          });
      if (!list_found) fail("the JSON has no list 'traceEvents', so it is no trace");
      if (rest.is_object()) take_head(rest);
    } catch (const TraceJson::parse_error& e) {
      builder_.fail(e.byte > 0 ? e.byte - 1 : 0, "no JSON, or damaged JSON");
    }
    name_threads();
    builder_.finish(&recording_, !ours_);
    return std::move(recording_);
  }

 private:
  using Parse = TraceJson::parse_event_t;
  using ThreadKey = std::pair<int64_t, int64_t>;
  struct ThreadNames {
    std::string name;
    int64_t id = -1, place = 0;
    bool used = false;  // by events, or named as a thread of ours
    uint32_t number = 0;
  };

  // Where in the file the parser does not tell.
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::data_loss, fmt::format("[profile] {}: {}", path_, what),
                {{.kind = ErrorFrame::Kind::file, .name = path_}});
  }

  void take(const TraceJson& value) {
    std::string phase;
    if (!text_at(value, "ph", &phase)) return;  // an empty object ends TensorFlow's list
    if (phase == "M") take_name(value);
    if (phase == "X") take_event(value);
    if (phase == "C") take_memory(value);
  }

  static ThreadKey thread_of(const TraceJson& value) {
    ThreadKey key{0, 0};
    integer_at(value, "pid", &key.first);
    integer_at(value, "tid", &key.second);
    return key;
  }
  ThreadNames& thread(const ThreadKey& key) {
    const auto [at, added] = threads_.try_emplace(key);
    if (added) at->second.number = static_cast<uint32_t>(threads_.size() - 1);
    return at->second;
  }

  void take_name(const TraceJson& value) {
    std::string what, name;
    const auto args = value.find("args");
    if (!text_at(value, "name", &what) || args == value.end() || !args->is_object()) return;
    const ThreadKey key = thread_of(value);
    if (what == "process_name" && text_at(*args, "name", &name)) processes_[key.first] = name;
    if (what == "thread_name" && text_at(*args, "name", &name)) {
      ThreadNames& names = thread(key);
      names.name = name;
      names.used = integer_at(*args, "id", &names.id) || names.used;
    }
    if (what == "thread_sort_index") integer_at(*args, "sort_index", &thread(key).place);
  }

  int64_t nanoseconds_at(const TraceJson& value, const char* name) const {
    double microseconds = 0;
    if (!number_at(value, name, &microseconds) || microseconds < 0 || microseconds >= 9e15) {
      fail(fmt::format("event {} of the trace: '{}' must be a time in microseconds", count_, name));
    }
    const double whole = std::floor(microseconds);  // apart, for times since 1970 have no digits to spare
    return static_cast<int64_t>(whole) * 1000 + std::llround((microseconds - whole) * 1000);
  }

  void take_event(const TraceJson& value) {
    std::string name, category;
    text_at(value, "name", &name);
    text_at(value, "cat", &category);
    if (category == "step_line") return;  // shows again what the events say
    profile::Event event;
    profile::Kind kind = profile::Kind::user;
    const bool ours = profile_kind_from_name(category, &kind);
    if (ours) {
      event.name = name;
      event.kind = kind;
      ours_ = true;
    } else {
      const auto args = value.find("args");  // TensorFlow shows the type of an op and has the name here
      if (args != value.end() && args->is_object()) text_at(*args, "long_name", &name);
      take_tensorflow_name(name, &event);
    }
    ThreadNames& line = thread(thread_of(value));
    line.used = true;
    event.thread = line.number;
    event.begin_ns = nanoseconds_at(value, "ts");
    event.end_ns = event.begin_ns + (value.contains("dur") ? nanoseconds_at(value, "dur") : 0);
    ProfileMarks marks;
    const auto args = value.find("args");
    if (args != value.end() && args->is_object()) {
      text_at(*args, "op", &event.op_type);
      integer_at(*args, "step", &event.step);
      event.step = std::max<int64_t>(event.step, -1);
      integer_at(*args, "bytes", &event.bytes);
      event.bytes = profile_bytes(event.bytes);
      number_at(*args, "flops", &event.flops);
      event.flops = std::max(event.flops, 0.0);
      if (!text_at(*args, "shapes", &event.detail)) text_at(*args, "detail", &event.detail);
      integer_at(*args, "group_id", &marks.group);
      int64_t number = -1;
      if (!ours && (integer_at(*args, "step_num", &number) || args->contains("step_name"))) {
        event.kind = profile::Kind::step;
        event.step = std::max<int64_t>(number >= 0 ? number : marks.group, -1);
      }
    }
    builder_.add(std::move(event), marks, 0);
  }

  void take_memory(const TraceJson& value) {
    std::string name;
    profile::MemorySample sample;
    const auto args = value.find("args");
    if (!text_at(value, "name", &name) || name != "memory" || args == value.end() || !args->is_object() ||
        !integer_at(*args, "live bytes", &sample.live_bytes)) {
      return;
    }
    sample.live_bytes = profile_bytes(sample.live_bytes);
    sample.at_ns = nanoseconds_at(value, "ts");
    text_at(value, "op", &sample.op);
    builder_.count_text(sample.op.size(), 0);
    recording_.memory.push_back(std::move(sample));
  }

  void take_head(const TraceJson& trace) {
    const auto head = trace.find("otherData");
    if (head == trace.end() || !head->is_object()) return;
    std::string writer;
    ours_ = (text_at(*head, "writer", &writer) && writer == "runnel") || ours_;
    text_at(*head, "host", &recording_.host);
    integer_at(*head, "started_unix_ns", &recording_.started_unix_ns);
    integer_at(*head, "length_ns", &recording_.length_ns);
    integer_at(*head, "lost_events", &recording_.lost);
    recording_.lost = std::max<int64_t>(recording_.lost, 0);
    number_at(*head, "peak_flops_per_second", &recording_.peak.flops_per_second);
    number_at(*head, "peak_bytes_per_second", &recording_.peak.bytes_per_second);
  }

  // Threads have the numbers of their first mention.
  void name_threads() {
    recording_.threads.resize(threads_.size());
    for (const auto& [key, names] : threads_) {
      profile::Thread& t = recording_.threads[names.number];
      t.id = static_cast<uint32_t>(names.id >= 0 ? names.id : key.second);
      t.name = names.name.empty() ? fmt::format("thread {}", key.second) : names.name;
      const auto process = processes_.find(key.first);
      if (!ours_ && process != processes_.end() && process->second != "/host:CPU") {
        t.name = fmt::format("{} {}", process->second, t.name);
      }
    }
    // The line of steps comes last of ours, after all threads; it has no events of its own.
    if (ours_ && !recording_.threads.empty()) {
      const auto last = std::ranges::find(threads_, recording_.threads.size() - 1,
                                          [](const auto& t) { return static_cast<size_t>(t.second.number); });
      if (!last->second.used) recording_.threads.pop_back();
    }
  }

  std::string_view json_;
  const std::string& path_;
  ProfileBuilder builder_;
  profile::Recording recording_;
  std::map<ThreadKey, ThreadNames> threads_;
  std::map<int64_t, std::string> processes_;
  std::string key_;  // of the outermost object; empty in a bare list
  uint64_t count_ = 0;
  bool ours_ = false;
};

}  // namespace

profile::Recording parse_chrome_trace(std::string_view json, const std::string& path) {
  return TraceReader(json, path).read();
}

}  // namespace runnel::io
