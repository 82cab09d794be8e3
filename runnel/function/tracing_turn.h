#pragma once

// Internal: who traces a function, and who waits for it.
#include "runnel/function/function.h"
#include "runnel/tensor/thread_context.h"

namespace runnel::function_detail {

// Threads trace a function one after the other, so that what its C++ code does in the first trace (making variables)
// happens once. But none waits for a thread that may be waiting for it: a function may call others, which other threads
// are tracing, and workers whose results a trace waits for may call the function itself. Such a thread traces at the
// same time, and the first to be done counts.
class RUNNEL_API TracingTurn {
 public:
  explicit TracingTurn(Core& function);
  ~TracingTurn();
  TracingTurn(const TracingTurn&) = delete;
  TracingTurn& operator=(const TracingTurn&) = delete;

 private:
  Core& function_;
  bool taken_ = false;
};

// While it lives, this thread may wait for any other: nobody waits for functions that it is tracing.
class RUNNEL_API WaitsForWorkers {
 public:
  WaitsForWorkers();
  ~WaitsForWorkers();
  WaitsForWorkers(const WaitsForWorkers&) = delete;
  WaitsForWorkers& operator=(const WaitsForWorkers&) = delete;

 private:
  bool told_;
};

}  // namespace runnel::function_detail
