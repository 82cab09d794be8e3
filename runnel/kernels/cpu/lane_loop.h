#pragma once

#include <memory>

#include "runnel/op/lane.h"

namespace runnel::cpu {

// LaneCode as a loop over arrays of floats, compiled to machine code for x86-64 with AVX2: one pass over memory, what
// is computed in between stays in registers. IEEE arithmetic without contraction, so the bits of C++ compiled so; which
// of two NaN comes out of an operation is open, as it is there.
class RUNNEL_API LaneLoop {
 public:
  enum class Input { array, scalar };

  static bool available();  // on this machine

  // The inputs of the code by number, and the steps of it whose values are stored. Null where the machine or the system
  // does not let us, or where it takes more arrays or registers than there are.
  static std::unique_ptr<LaneLoop> compile(const LaneCode& code, const std::vector<Input>& inputs,
                                           const std::vector<int>& results);
  ~LaneLoop();
  LaneLoop(const LaneLoop&) = delete;
  LaneLoop& operator=(const LaneLoop&) = delete;

  // On the calling thread. A result may be exactly an input that no step reads after it.
  void run(const float* const* inputs, float* const* results, int64_t n) const;

 private:
  using Entry = void (*)(void* const* arrays, const float* pool, int64_t bytes);

  LaneLoop() = default;

  std::vector<Input> inputs_;
  size_t num_results_ = 0;
  std::vector<uint32_t> pool_;  // the bits of constants; scalar inputs stand behind them
  void* memory_ = nullptr;
  size_t memory_size_ = 0;
};

}  // namespace runnel::cpu
