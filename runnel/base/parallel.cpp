#include "runnel/base/parallel.h"

#include <algorithm>

namespace runnel {

int num_threads() { return 1; }
void set_num_threads(int) {}
void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  for (int64_t i = 0; i < n; i += grain) body(i, std::min(n, i + grain));
}

}  // namespace runnel
