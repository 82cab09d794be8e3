#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>

namespace runnel::test {

// Runs `body` on a thread with a small stack, so that calls without end reach the end of it soon. Not under
// ThreadSanitizer: of a stack that deep its runtime fails a check of its own, and hangs.
inline void on_small_stack([[maybe_unused]] const std::function<void()>& body) {
#ifndef __SANITIZE_THREAD__
  constexpr size_t kBytes = 2 << 20;
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kBytes), 0);
  std::function<void()> run = body;
  const auto start = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &run), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
#endif
}

}  // namespace runnel::test
