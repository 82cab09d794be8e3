#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "runnel/base/export.h"
#include "runnel/base/philox.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// Where stateful random ops get their numbers: a seed and how many Philox blocks were drawn so far. Ops reserve
// their blocks in program order, so eager and traced programs draw the same numbers, and its State is all there is to
// save. An op with a seed of its own has its own stream under the context's seed.
class RUNNEL_API RandomContext {
 public:
  explicit RandomContext(uint64_t seed) : state_{.seed = seed} {}

  void reset(uint64_t seed);
  // A generator that may draw `blocks` blocks; op_seed 0 is the context's own stream.
  Philox reserve(uint64_t blocks, int64_t op_seed = 0);

  struct State {
    uint64_t seed = 0;
    uint64_t offset = 0;                          // blocks drawn from the context's own stream
    std::map<int64_t, uint64_t> op_offsets = {};  // by op_seed: blocks drawn from the streams of ops
    bool operator==(const State&) const = default;
  };
  State state() const;
  void restore(State state);

  // The context of this thread: the program's, unless a scope put another in its place.
  static RandomContext& current();

 private:
  mutable std::mutex mutex_;
  State state_;
};

// Replaces this thread's context while it lives: pipelines draw per element, whatever thread runs them.
class RUNNEL_API RandomScope {
 public:
  explicit RandomScope(RandomContext& context) : scope_(&context) {}

 private:
  ContextScope<&ThreadContext::random> scope_;
};

}  // namespace runnel
