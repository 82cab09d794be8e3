#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

#include "runnel/base/export.h"
#include "runnel/base/philox.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// Where stateful random ops get their numbers: a seed and how many Philox blocks were drawn so far. Ops reserve
// their blocks in program order, so eager and traced programs draw the same numbers, and its State is all there is to
// save. An op with seeds of its own has a stream of its own: TensorFlow's for the pair (seed, seed2), where 0 for the
// first stands for the context's seed.
class RUNNEL_API RandomContext {
 public:
  explicit RandomContext(uint64_t seed) : state_{.seed = seed} {}
  // For one element of a pipeline: ops with both seeds given draw other numbers for each element, too.
  static RandomContext of_element(uint64_t key);

  void reset(uint64_t seed);
  // A generator that may draw `blocks` blocks of the context's own stream, or as many as TensorFlow sets aside for
  // `outputs` numbers of the stream of an op with these seeds.
  Philox reserve(uint64_t blocks) { return reserve(blocks, 0, {}); }
  struct OpSeeds {
    int64_t seed = 0, seed2 = 0;
    bool operator==(const OpSeeds&) const = default;
    auto operator<=>(const OpSeeds&) const = default;
  };
  Philox reserve(uint64_t blocks, int64_t outputs, const OpSeeds& seeds);

  struct State {
    uint64_t seed = 0;
    uint64_t offset = 0;                          // blocks drawn from the context's own stream
    std::map<OpSeeds, uint64_t> op_offsets = {};  // blocks drawn from the streams of ops
    bool operator==(const State&) const = default;
  };
  State state() const;
  void restore(State state);

  // The context of this thread: the program's, unless a scope put another in its place.
  static RandomContext& current();

 private:
  RandomContext(uint64_t seed, bool of_element) : state_{.seed = seed}, of_element_(of_element) {}

  mutable std::mutex mutex_;
  State state_;
  bool of_element_ = false;
};

// Replaces this thread's context while it lives: pipelines draw per element, whatever thread runs them.
class RUNNEL_API RandomScope {
 public:
  explicit RandomScope(RandomContext& context) : scope_(&context) {}

 private:
  ContextScope<&ThreadContext::random> scope_;
};

}  // namespace runnel
