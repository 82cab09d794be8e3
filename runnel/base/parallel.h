#pragma once

#include <cstdint>

#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"

namespace runnel {

// Threads that compute: the number used by one op (the caller counts as one). 1 means no worker exists.
// The default is RUNNEL_NUM_THREADS, else the CPUs this process may use (affinity and cgroup limits).
RUNNEL_API int num_threads();
RUNNEL_API void set_num_threads(int n);

// Calls body(begin, end) for the ranges [0, grain), [grain, 2*grain), ... of [0, n), each exactly once,
// on the compute pool and the caller. The cut depends on n and grain alone, never on the number of
// threads, so a body that writes only its own range gives the same bits with any thread count.
// Nested calls run inline. The first exception (lowest range) is rethrown after all ranges ended.
RUNNEL_API void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

}  // namespace runnel
