#pragma once

// Internal: what a recording of a profile holds. profile_scope.h says how code of the library puts events into one;
// profiler.h is what users call. docs/profiling.md
#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/machine_peak.h"

namespace runnel::profile {

enum class Kind : uint8_t {
  op,          // an eager call of an op (name: the op)
  node,        // a step of a plan (name: the node; op_type: the op)
  chain,       // elementwise steps of a plan that ran together
  group,       // steps of a plan that ran side by side
  run,         // a call of a traced function / run of a graph (name: the function)
  tracing,     // a function was traced
  pass,        // one pass over a graph, or making its plan
  stage,       // a stage of a pipeline produced an element, in the thread that did it
  input_wait,  // the consumer of a pipeline waited for an element
  checkpoint,  // parts of saving and restoring
  summary,     // writing of summaries
  step,        // a training step (fit, or profiler::Trace with a step number)
  user,        // profiler::Trace
};

struct Event {
  std::string name;
  std::string op_type;  // of node, op; else empty
  Kind kind = Kind::user;
  uint32_t thread = 0;   // index in Recording::threads
  int64_t begin_ns = 0;  // since the start of the recording
  int64_t end_ns = 0;
  int64_t step = -1;   // -1: of none
  int64_t bytes = 0;   // read and written, where known
  double flops = 0;    // where known
  std::string detail;  // shapes, "float32[50,784] float32[784,100]"; or words
};

// After this op asked for memory or gave some back.
struct MemorySample {
  int64_t at_ns = 0;
  int64_t live_bytes = 0;
  std::string op;
};

struct Thread {
  uint32_t id = 0;   // of the system
  std::string name;  // "main", "pool 0", "pipeline map 1", ...
};

struct Recording {
  std::string host;
  int64_t started_unix_ns = 0;
  int64_t length_ns = 0;
  std::vector<Thread> threads;
  std::vector<Event> events;         // in order of begin
  std::vector<MemorySample> memory;  // in order of time
  int64_t lost = 0;                  // events that found no room
  MachinePeak peak;                  // of the machine that was recorded, where it was measured
};

// One recording at a time, of the whole program; both may be called on any thread. An Error where one is under way
// (none is).
RUNNEL_API void start();
RUNNEL_API Recording stop();

}  // namespace runnel::profile
