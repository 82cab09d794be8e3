#pragma once

#include "runnel/base/export.h"

namespace runnel {

// What this machine can do at best with as many threads as the compute pool has; profiles carry it, so that a report
// can say how near an op comes. 0: not known.
struct MachinePeak {
  double flops_per_second = 0;  // of float32, multiplications and additions counted apart
  double bytes_per_second = 0;  // read from and written to memory that no cache holds
  bool known() const { return flops_per_second > 0 && bytes_per_second > 0; }
};

// Measured at the first call, which takes about a tenth of a second and as many threads as the pool has. It is a
// measurement: other programs that compute meanwhile lower it.
RUNNEL_API const MachinePeak& machine_peak();

}  // namespace runnel
