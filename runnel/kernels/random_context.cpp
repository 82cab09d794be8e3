#include "runnel/kernels/random_context.h"

#include <random>

namespace runnel {
namespace {

constinit thread_local RandomContext* scoped_context = nullptr;

}  // namespace

void RandomContext::reset(uint64_t seed) {
  std::lock_guard lock(mutex_);
  seed_ = seed;
  offset_ = 0;
  op_offsets_.clear();
}

Philox RandomContext::reserve(uint64_t blocks, int64_t op_seed) {
  std::lock_guard lock(mutex_);
  uint64_t& offset = op_seed == 0 ? offset_ : op_offsets_[op_seed];
  Philox generator(seed_, static_cast<uint64_t>(op_seed));
  generator.skip(offset);
  offset += blocks;
  return generator;
}

RandomContext::State RandomContext::state() const {
  std::lock_guard lock(mutex_);
  return {seed_, offset_};
}

void RandomContext::restore(State state) {
  std::lock_guard lock(mutex_);
  seed_ = state.seed;
  offset_ = state.offset;
  op_offsets_.clear();
}

RandomContext& RandomContext::current() {
  if (scoped_context) return *scoped_context;
  static auto* global = [] {
    std::random_device entropy;
    return new RandomContext(uint64_t{entropy()} << 32 | entropy());
  }();
  return *global;
}

RandomScope::RandomScope(RandomContext& context) : outer_(std::exchange(scoped_context, &context)) {}
RandomScope::~RandomScope() { scoped_context = outer_; }

}  // namespace runnel
