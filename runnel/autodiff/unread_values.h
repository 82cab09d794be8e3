#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

// The large results that a tape holds and that no recorded gradient reads, only their shapes. As soon as the tape is
// the last that holds one, its memory goes back; the tensor itself stays, for its address is what the tape knows it by.
class UnreadValues {
 public:
  // A result that the gradient of its own op does not read, held once.
  void made(const Tensor& t) {
    const TensorImpl& impl = *t.impl();
    if (!impl.symbol && impl.num_elements * static_cast<int64_t>(dtype_size(impl.dtype)) >= kWorthwhile) {
      held_.push_back({t.impl().get(), 1});
    }
  }
  // A tensor that the tape now holds as the input of an op.
  void used(const Tensor& t, bool read) {
    const auto at = std::find_if(held_.begin(), held_.end(), [&](const Held& h) { return h.impl == t.impl().get(); });
    if (at == held_.end()) return;
    if (read) {
      held_.erase(at);
    } else {
      ++at->times;
    }
  }
  // Gives back the memory of those that only the tape still holds.
  void release() {
    std::erase_if(held_, [](const Held& h) {
      if (h.impl->ref_count() != h.times) return false;
      std::atomic_thread_fence(std::memory_order_acquire);  // whoever let go of it last has read it to the end
      h.impl->buffer = nullptr;
      h.impl->data = nullptr;
      return true;
    });
  }
  void clear() { held_.clear(); }

 private:
  static constexpr int64_t kWorthwhile = 32 << 10;  // bytes: keeping book of smaller ones costs more than they do

  struct Held {
    TensorImpl* impl;
    int32_t times;
  };
  std::vector<Held> held_;
};

}  // namespace runnel
