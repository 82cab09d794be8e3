#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"

namespace runnel {

// Threads that compute: the number used by one op (the caller counts as one). 1 means no worker exists.
// The default is RUNNEL_NUM_THREADS, else the CPUs this process may use (affinity and cgroup limits).
// set_num_threads waits for a running parallel_for to end, joins the old workers and starts the new ones;
// calling it inside a parallel_for is an error. Unless it is called, workers start with the first
// parallel_for that wants them.
RUNNEL_API int num_threads();
RUNNEL_API void set_num_threads(int n);

// Calls body(begin, end) for the ranges [0, grain), [grain, 2*grain), ... of [0, n), each exactly once,
// on the compute pool and the caller, in an order that differs from call to call. The cut depends on n and grain
// alone, never on the number of threads, so a body that writes only its own range gives the same bits with any thread
// count.
// Nested calls run inline (one single range runs on the caller alone and leaves the pool to calls inside it).
// Every range runs even if one throws; the first exception (lowest range) is rethrown after all ranges ended.
// Any number of threads may call at once: the pool serves one of them, the others run inline. A body must
// not wait for another range or another thread.
RUNNEL_API void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// While one lives, parallel_for on this thread runs inline. May be nested.
class RUNNEL_API SerialScope {
 public:
  SerialScope() noexcept;
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;
};

// combine(... combine(combine(identity, map(range 0)), map(range 1)) ..., map(last)): the ranges are those of
// parallel_for and are combined in their order, so the result has the same bits with any thread count.
template <class T, class Map, class Combine>
T parallel_reduce(int64_t n, int64_t grain, T identity, Map&& map, Combine&& combine) {
  if (n <= 0) return identity;
  if (n <= grain) return combine(std::move(identity), map(int64_t{0}, n));
  struct Slot {  // not a bare T: vector<bool> has no separate elements
    T value;
  };
  std::vector<Slot> parts(static_cast<size_t>((n - 1) / grain + 1), Slot{identity});
  parallel_for(n, grain,
               [&](int64_t begin, int64_t end) { parts[static_cast<size_t>(begin / grain)].value = map(begin, end); });
  T result = std::move(identity);
  for (Slot& part : parts) result = combine(std::move(result), std::move(part.value));
  return result;
}

}  // namespace runnel
