#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "runnel/base/format.h"
#include "runnel/io/chrome_trace.h"
#include "runnel/io/profile_names.h"
#include "runnel/io/profile_steps.h"

namespace runnel::io {
namespace {

// Recordings have millions of events: their lines are put together here, and only texts go through the JSON library.
class TraceWriter {
 public:
  explicit TraceWriter(const profile::Recording& recording) : recording_(recording), steps_(recording) {}

  std::string text() {
    out_ = fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[\n", head());
    line(R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}})",
         quoted(recording_.host.empty() ? "runnel" : recording_.host));
    for (size_t t = 0; t < recording_.threads.size(); ++t) {
      lines_.push_back(free_line(recording_.threads[t].id));
      name_line(lines_.back(), recording_.threads[t].name, t + 1, recording_.threads[t].id);
    }
    write_steps();
    for (const profile::Event& e : recording_.events) write_event(e);
    for (const profile::MemorySample& sample : recording_.memory) {
      line(R"({{"ph":"C","pid":1,"tid":0,"ts":{},"name":"memory","op":{},"args":{{"live bytes":{}}}}})",
           microseconds(sample.at_ns), quoted(sample.op), sample.live_bytes);
    }
    out_.resize(out_.size() - 2);  // the last comma and end of line
    return std::move(out_) + "\n]}\n";
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += ",\n";
  }

  std::string head() const {
    nlohmann::ordered_json head = {{"writer", "runnel"},
                                   {"host", recording_.host},
                                   {"started_unix_ns", recording_.started_unix_ns},
                                   {"length_ns", recording_.length_ns},
                                   {"lost_events", recording_.lost}};
    if (recording_.peak.known()) {
      head["peak_flops_per_second"] = recording_.peak.flops_per_second;
      head["peak_bytes_per_second"] = recording_.peak.bytes_per_second;
    }
    return head.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  // Names come again and again.
  const std::string& quoted(const std::string& text) {
    const auto [at, added] = quoted_.try_emplace(text);
    if (added) at->second = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return at->second;
  }

  // Exact: the trace counts in microseconds, we in nanoseconds.
  static std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

  // The system uses numbers of threads again, the viewer needs each once.
  uint64_t free_line(uint64_t wanted) {
    for (uint64_t other = UINT32_MAX - 1; !taken_.insert(wanted).second; --other) wanted = other;
    return wanted;
  }
  void name_line(uint64_t tid, const std::string& name, size_t place, uint64_t system_id) {
    line(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{},"id":{}}}}})", tid, quoted(name),
         system_id);
    line(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", tid, place);
  }

  // A line of its own above the threads.
  void write_steps() {
    if (steps_.steps().empty()) return;
    const uint64_t tid = free_line(UINT32_MAX);
    line(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"steps"}}}})", tid);
    line(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_sort_index","args":{{"sort_index":0}}}})", tid);
    for (const ProfileSteps::Step& step : steps_.steps()) {
      line(R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":{},"cat":"step_line"}})", tid,
           microseconds(step.begin_ns), microseconds(step.end_ns - step.begin_ns),
           quoted(fmt::format("{} {}", recording_.events[step.event].name, step.number)));
    }
  }

  void write_event(const profile::Event& e) {
    if (e.thread >= lines_.size()) {
      throw make_error(Code::internal, "[profile] the event '{}' is of thread {}, and there are {}", e.name, e.thread,
                       lines_.size());
    }
    std::string args;
    const auto add = [&](const char* name, const std::string& value) {
      fmt::format_to(std::back_inserter(args), "{}\"{}\":{}", args.empty() ? "" : ",", name, value);
    };
    if (!e.op_type.empty()) add("op", quoted(e.op_type));
    if (e.step >= 0) add("step", fmt::to_string(e.step));
    if (e.bytes != 0) add("bytes", fmt::to_string(e.bytes));
    if (e.flops != 0) add("flops", fmt::format("{}", e.flops));
    if (!e.detail.empty()) add(is_op_kind(e.kind) ? "shapes" : "detail", quoted(e.detail));
    line(R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{{}}}}})", lines_[e.thread],
         microseconds(e.begin_ns), microseconds(e.end_ns - e.begin_ns), quoted(e.name), profile_kind_name(e.kind),
         args);
  }

  const profile::Recording& recording_;
  const ProfileSteps steps_;
  std::string out_;
  std::unordered_map<std::string, std::string> quoted_;
  std::vector<uint64_t> lines_;  // tid of each thread
  std::set<uint64_t> taken_;
};

}  // namespace

std::string chrome_trace_json(const profile::Recording& recording) { return TraceWriter(recording).text(); }

}  // namespace runnel::io
