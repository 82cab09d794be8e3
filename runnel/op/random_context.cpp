#include "runnel/op/random_context.h"

#include <random>
#include <utility>

namespace runnel {

void RandomContext::reset(uint64_t seed) {
  std::lock_guard lock(mutex_);
  state_ = {.seed = seed};
}

RandomContext RandomContext::of_element(uint64_t key) { return {key, true}; }

Philox RandomContext::reserve(uint64_t blocks, int64_t outputs, const OpSeeds& seeds) {
  constexpr uint64_t kBlocksPerOutput = 256;  // TensorFlow's
  std::lock_guard lock(mutex_);
  const bool own_stream = seeds == OpSeeds{};
  uint64_t& offset = own_stream ? state_.offset : state_.op_offsets[seeds];
  const auto given = static_cast<uint64_t>(seeds.seed);
  const uint64_t first = given == 0 ? state_.seed : of_element_ ? given ^ state_.seed : given;
  Philox generator(first, static_cast<uint64_t>(seeds.seed2));
  generator.skip(offset);
  offset += own_stream ? blocks : static_cast<uint64_t>(outputs) * kBlocksPerOutput;
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
