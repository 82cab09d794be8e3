#include "runnel/base/stack.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>

namespace runnel {
namespace {

// What one level may use: the graph, its kernels, and what they throw.
constexpr size_t kRoom = 512 * 1024;

// The part at the end of this thread's stack that is to stay free; empty where the stack is not known.
struct Reserve {
  uintptr_t lowest = 0;
  uintptr_t end = 0;
};
Reserve find_reserve() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  if (!known) return {};
  const auto begin = reinterpret_cast<uintptr_t>(lowest);
  return {begin, begin + std::min(kRoom, size / 4)};
}

}  // namespace

bool stack_has_room() {
  static thread_local const Reserve reserve = find_reserve();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here < reserve.lowest || here > reserve.end;
}

}  // namespace runnel
