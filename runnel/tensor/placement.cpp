#include "runnel/tensor/placement.h"

#include <utility>

namespace runnel {
namespace {

thread_local Placement* innermost = nullptr;

}  // namespace

std::atomic<int> Placement::open_{0};

Placement::Placement(Tensor room) : room_(std::move(room)) {
  if (!room_.defined()) return;
  outer_ = std::exchange(innermost, this);
  open_.fetch_add(1, std::memory_order_relaxed);
}

Placement::~Placement() {
  if (innermost != this) return;
  innermost = outer_;
  open_.fetch_sub(1, std::memory_order_relaxed);
}

Tensor Placement::take_offered(DType dtype, const Shape& shape) {
  if (!innermost || !innermost->room_.defined()) return {};
  const TensorImpl& room = *innermost->room_.impl();
  if (room.dtype != dtype || room.num_elements != shape.num_elements()) return {};
  const Tensor taken = innermost->room_.with_shape(shape);
  innermost->room_ = Tensor();
  return taken;
}

}  // namespace runnel
