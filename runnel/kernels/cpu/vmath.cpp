#include "runnel/kernels/cpu/vmath.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/vmath_arrays_isa.h"
#define RUNNEL_ISA_WITH_AVX512
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {

#define RUNNEL_VMATH_DEFINE(name, Name) \
  void v##name(const float* x, float* y, int64_t n) { RUNNEL_BEST_ISA(name##_array)(x, y, n); }
RUNNEL_VMATH_FUNCTIONS(RUNNEL_VMATH_DEFINE)
#undef RUNNEL_VMATH_DEFINE

void vatan2(const float* y, const float* x, float* angle, int64_t n) { RUNNEL_BEST_ISA(atan2_array)(y, x, angle, n); }

}  // namespace runnel::cpu
