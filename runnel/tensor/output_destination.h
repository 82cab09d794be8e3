#pragma once

#include <atomic>
#include <optional>

#include "runnel/tensor/tensor.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// Offers memory for what ops on this thread make while it lives: the first result with the dtype and the number of
// elements of `room` is written there instead of into memory of its own. So the function of a map can write its result
// into the batch. Nested ones hide each other.
class RUNNEL_API OutputDestination {
 public:
  explicit OutputDestination(Tensor room);  // undefined: offers nothing
  ~OutputDestination();
  OutputDestination(const OutputDestination&) = delete;
  OutputDestination& operator=(const OutputDestination&) = delete;

  // The room that this thread is offered, in this shape; undefined when there is none that fits. Is offered once.
  static Tensor take(DType dtype, const Shape& shape) {
    return open_.load(std::memory_order_relaxed) == 0 ? Tensor() : take_offered(dtype, shape);
  }

 private:
  static Tensor take_offered(DType dtype, const Shape& shape);

  static std::atomic<int> open_;  // on all threads
  Tensor room_;
  std::optional<ContextScope<&ThreadContext::destination>> scope_;
};

}  // namespace runnel
