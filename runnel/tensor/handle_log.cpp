#include "runnel/tensor/handle_log.h"

namespace runnel {

constinit std::atomic<int> detail::open_handle_logs = 0;

void detail::handle_assigned(Tensor* handle) noexcept {
  if (HandleLog* log = current_context.handle_log) log->assigned(handle);
}
void detail::handle_destroyed(Tensor* handle) noexcept {
  if (HandleLog* log = current_context.handle_log) log->destroyed(handle);
}

HandleLogScope::HandleLogScope(HandleLog* log)
    : change_((log != nullptr) - (detail::current_context.handle_log != nullptr)), scope_(log) {
  detail::open_handle_logs.fetch_add(change_, std::memory_order_relaxed);
}
HandleLogScope::~HandleLogScope() { detail::open_handle_logs.fetch_sub(change_, std::memory_order_relaxed); }

void UnloggedHandles::begin() {
  ends_only_.outer = detail::current_context.handle_log;
  if (ends_only_.outer) scope_.emplace(&ends_only_);
}

}  // namespace runnel
