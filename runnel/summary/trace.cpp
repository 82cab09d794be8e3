#include "runnel/summary/trace.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/varint.h"
#include "runnel/function/called_graphs.h"
#include "runnel/graph/control_flow.h"
#include "runnel/graph/graph_function.h"
#include "runnel/io/event.h"
#include "runnel/op/composed.h"
#include "runnel/summary/profile_owner.h"
#include "runnel/summary/record.h"
#include "runnel/summary/summary.h"

namespace runnel::summary {
namespace {

struct OpenTrace {
  bool graph = true, profiler = false;
  std::string profiler_outdir;
};
struct TraceSlot {
  std::mutex mutex;
  std::optional<OpenTrace> open;
};
TraceSlot& trace_slot() {
  static auto* const slot = new TraceSlot;
  return *slot;
}

void append_number(std::string& out, uint32_t field, int64_t value) {
  append_varint(out, uint64_t{field} << 3);
  append_varint(out, static_cast<uint64_t>(value));
}

// Into a RunMetadata message: the graph as it runs, and a FunctionGraphs message with that and with the graph as it was
// traced. TensorFlow repeats it so, too.
void append_graphs(std::string& run_metadata, const GraphFunction& f) {
  const std::string runs = f.planned_graph().to_shown_graph_def(true);
  std::string graphs;
  io::append_field(graphs, 1, runs);
  io::append_field(graphs, 2, f.graph().to_shown_graph_def());
  io::append_field(graphs, 3, runs);
  io::append_field(run_metadata, 3, runs);
  io::append_field(run_metadata, 4, graphs);
}

// A NodeExecStats message.
std::string node_stats(const profile::Event& event, const profile::Recording& recording) {
  constexpr int64_t kMicro = 1000;
  const int64_t took = (event.end_ns - event.begin_ns) / kMicro;
  std::string message;
  io::append_field(message, 1, event.name);
  append_number(message, 2, (recording.started_unix_ns + event.begin_ns) / kMicro);
  append_number(message, 3, 0);
  append_number(message, 4, took);
  append_number(message, 5, took);
  io::append_field(message, 8, fmt::format("{} = {}({})", event.name, event.op_type, event.detail));
  append_number(message, 10, event.thread);
  return message;
}

// A StepStats message: when nodes ran.
std::string step_stats(const profile::Recording& recording) {
  std::string device;
  io::append_field(device, 1, std::string_view("/job:localhost/replica:0/task:0/device:CPU:0"));
  for (const profile::Event& event : recording.events) {
    if (event.kind == profile::Kind::node) io::append_field(device, 2, node_stats(event, recording));
  }
  std::string message;
  io::append_field(message, 1, device);
  return message;
}

// Nothing is thrown away where that cannot be written.
void require_step(const Step& step) {
  if (eager_writer()) eager_step(step);
}

bool refused_in_function(const char* what) {
  if (!is_tracing()) return false;
  log_warning("[summary::{}] a function is being traced: nothing is done. Call it outside of functions", what);
  return true;
}

}  // namespace

void trace_on(bool graph, bool profiler, const std::string& profiler_outdir, SourceSite where) {
  if (refused_in_function("trace_on")) return;
  composed(where, [&] {
    const std::lock_guard lock(trace_slot().mutex);
    if (trace_slot().open) return log_warning("[summary::trace_on] a trace is on already");
    if (profiler) profiler::begin_recording(profiler::Owner::trace, profiler_outdir);
    if (graph || profiler) function_detail::collect_calls();
    trace_slot().open = {graph, profiler, profiler_outdir};
  });
}

void trace_export(std::string_view name, const Step& step, const std::string& profiler_outdir, SourceSite where) {
  if (refused_in_function("trace_export")) return;
  composed(where, [&] {
    OpenTrace ended;
    {
      const std::lock_guard lock(trace_slot().mutex);
      std::optional<OpenTrace>& open = trace_slot().open;
      if (!open) {
        throw invalid_argument("[summary::trace_export] no trace is on: call summary::trace_on before what is traced");
      }
      if (!profiler_outdir.empty()) open->profiler_outdir = profiler_outdir;
      if (open->profiler && open->profiler_outdir.empty()) {
        throw invalid_argument("[summary::trace_export] the profile has no folder: give profiler_outdir");
      }
      require_step(step);
      ended = *std::exchange(open, std::nullopt);
    }
    const std::vector<GraphFunctionPtr> called = function_detail::collected_calls();
    std::string message;
    if (ended.profiler && profiler::is_recording(profiler::Owner::trace)) {
      io::append_field(message, 1,
                       step_stats(profiler::write_recording(profiler::Owner::trace, ended.profiler_outdir)));
    }
    for (const GraphFunctionPtr& f : called) append_graphs(message, *f);
    // With a profile it is what TensorFlow writes so, too: the graphs and what was measured.
    if (ended.graph && !ended.profiler) {
      run_metadata_graphs(name, message, step);
    } else {
      run_metadata(name, message, step);
    }
  });
}

void trace_off() {
  const std::lock_guard lock(trace_slot().mutex);
  const std::optional<OpenTrace> ended = std::exchange(trace_slot().open, std::nullopt);
  if (!ended) return;
  function_detail::collected_calls();
  if (ended->profiler && profiler::is_recording(profiler::Owner::trace)) {
    profiler::end_recording(profiler::Owner::trace);
  }
}

}  // namespace runnel::summary
