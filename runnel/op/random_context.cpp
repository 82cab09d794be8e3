#include "runnel/op/random_context.h"

#include <random>
#include <utility>

namespace runnel {

void RandomContext::reset(uint64_t seed) {
  std::lock_guard lock(mutex_);
  state_ = {.seed = seed};
}

Philox RandomContext::reserve(uint64_t blocks, int64_t op_seed) {
  std::lock_guard lock(mutex_);
  uint64_t& offset = op_seed == 0 ? state_.offset : state_.op_offsets[op_seed];
  Philox generator(state_.seed, static_cast<uint64_t>(op_seed));
  generator.skip(offset);
  offset += blocks;
  return generator;
}

RandomContext::State RandomContext::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void RandomContext::restore(State state) {
  std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

RandomContext& RandomContext::current() {
  if (RandomContext* scoped = detail::current_context.random) return *scoped;
  static auto* global = [] {
    std::random_device entropy;
    return new RandomContext(uint64_t{entropy()} << 32 | entropy());
  }();
  return *global;
}

}  // namespace runnel
