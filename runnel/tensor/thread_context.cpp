#include "runnel/tensor/thread_context.h"

namespace runnel {

constinit thread_local ThreadContext detail::current_context;

ThreadContext& thread_context() { return detail::current_context; }

}  // namespace runnel
