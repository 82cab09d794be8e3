#include "runnel/tensor/output_destination.h"

#include <utility>

namespace runnel {

std::atomic<int> OutputDestination::open_{0};

OutputDestination::OutputDestination(Tensor room) : room_(std::move(room)) {
  if (!room_.defined()) return;
  scope_.emplace(this);
  open_.fetch_add(1, std::memory_order_relaxed);
}

OutputDestination::~OutputDestination() {
  if (scope_) open_.fetch_sub(1, std::memory_order_relaxed);
}

Tensor OutputDestination::take_offered(DType dtype, const Shape& shape) {
  OutputDestination* innermost = detail::current_context.destination;
  if (!innermost || !innermost->room_.defined()) return {};
  const TensorImpl& room = *innermost->room_.impl();
  if (room.dtype != dtype || room.num_elements != shape.num_elements()) return {};
  const Tensor taken = innermost->room_.with_shape(shape);
  innermost->room_ = Tensor();
  return taken;
}

}  // namespace runnel
