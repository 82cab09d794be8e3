#include "runnel/tensor/handle_log.h"

#include <utility>

namespace runnel {
namespace {

constinit thread_local HandleLog* current = nullptr;

}  // namespace

constinit std::atomic<int> detail::open_handle_logs = 0;

void detail::handle_assigned(Tensor* handle) noexcept {
  if (current) current->assigned(handle);
}
void detail::handle_destroyed(Tensor* handle) noexcept {
  if (current) current->destroyed(handle);
}

HandleLog* set_handle_log(HandleLog* log) {
  detail::open_handle_logs.fetch_add((log != nullptr) - (current != nullptr), std::memory_order_relaxed);
  return std::exchange(current, log);
}

}  // namespace runnel
