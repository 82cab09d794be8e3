#pragma once

// Arithmetic on sizes that comes to an Error, never to another number.
#include <cstdint>
#include <span>

#include "runnel/base/export.h"

namespace runnel {

namespace detail {
[[noreturn]] RUNNEL_API void size_too_large(int64_t a, const char* sign, int64_t b);
}

// a * b and a + b of known sizes; an Error (invalid_argument) where that is more than can be counted.
inline int64_t checked_times(int64_t a, int64_t b) {
  int64_t c = 0;
  if (__builtin_mul_overflow(a, b, &c)) [[unlikely]] {
    detail::size_too_large(a, "*", b);
  }
  return c;
}
inline int64_t checked_plus(int64_t a, int64_t b) {
  int64_t c = 0;
  if (__builtin_add_overflow(a, b, &c)) [[unlikely]] {
    detail::size_too_large(a, "+", b);
  }
  return c;
}

// All sizes multiplied: 1 of none. An Error also where a size is negative; 0 where one is 0, whatever the others are.
RUNNEL_API int64_t checked_product(std::span<const int64_t> sizes);

}  // namespace runnel
