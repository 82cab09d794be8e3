#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace runnel::test {

// The memory of this process that is really there.
inline int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;  // GCC's; clang's is not used
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// A sanitizer keeps freed memory aside.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace runnel::test
