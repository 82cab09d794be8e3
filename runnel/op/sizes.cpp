#include "runnel/op/sizes.h"

#include <algorithm>

#include "runnel/base/format.h"

namespace runnel {

void detail::size_too_large(int64_t a, const char* sign, int64_t b) {
  throw invalid_argument("a size of {} {} {} is more than can be counted", a, sign, b);
}

int64_t checked_product(std::span<const int64_t> sizes) {
  for (const int64_t size : sizes) {
    if (size < 0) throw invalid_argument("the shape has a negative size: {}", size);
  }
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t n = 1;
  for (const int64_t size : sizes) n = checked_times(n, size);
  return n;
}

}  // namespace runnel
