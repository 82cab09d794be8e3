#include "runnel/kernels/cpu/vmath.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/vmath_arrays_isa.h"
#define RUNNEL_ISA_WITH_AVX512
#include "runnel/kernels/cpu/array_form.h"
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {

#define RUNNEL_VMATH_DEFINE(name, Name) \
  void v##name(const float* x, float* y, int64_t n) { RUNNEL_BEST_ISA(name##_array)(x, y, n); }
RUNNEL_VMATH_FUNCTIONS(RUNNEL_VMATH_DEFINE)
#undef RUNNEL_VMATH_DEFINE

#define RUNNEL_VMATH_DEFINE_OF_TWO(name, Name) \
  void v##name(const float* a, const float* b, float* y, int64_t n) { RUNNEL_BEST_ISA(name##_array)(a, b, y, n); }
RUNNEL_VMATH_FUNCTIONS_OF_TWO(RUNNEL_VMATH_DEFINE_OF_TWO)
#undef RUNNEL_VMATH_DEFINE_OF_TWO

}  // namespace runnel::cpu
