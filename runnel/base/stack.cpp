#include "runnel/base/stack.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>

namespace runnel {
namespace {

// What one level may use: the graph, its kernels, and what they throw.
constexpr size_t kRoom = 512 * 1024;

// The lowest address that this thread's stack may reach, with the room above it; 0 where that is not known.
uintptr_t find_limit() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<uintptr_t>(lowest) + std::min(kRoom, size / 4) : 0;
}

}  // namespace

bool stack_has_room() {
  static thread_local const uintptr_t limit = find_limit();
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) > limit;
}

}  // namespace runnel
