#pragma once

#include "runnel/base/export.h"

namespace runnel {

// What this machine can do at best with the threads of the compute pool; profiles carry it, so that a report can say
// how near an op comes. 0: not known.
struct MachinePeak {
  double flops_per_second = 0;  // of float32, multiplications and additions counted apart
  double bytes_per_second = 0;  // read from and written to memory that no cache holds
  bool known() const { return flops_per_second > 0 && bytes_per_second > 0; }
};

// Measured at the first call, which takes about a tenth of a second and the whole compute pool. It is a measurement:
// other programs that compute meanwhile lower it, and so does a compute pool that is busy, for bytes_per_second.
RUNNEL_API const MachinePeak& machine_peak();

}  // namespace runnel
