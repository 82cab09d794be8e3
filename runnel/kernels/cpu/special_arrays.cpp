#include "runnel/kernels/cpu/array_form.h"
#include "runnel/kernels/cpu/special.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/special_isa.h"
#define RUNNEL_ISA_WITH_AVX512
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {

#define RUNNEL_SPECIAL_DEFINE(name, Name) \
  void v##name(const float* x, float* y, int64_t n) { RUNNEL_BEST_ISA(name##_array)(x, y, n); }
RUNNEL_SPECIAL_FUNCTIONS(RUNNEL_SPECIAL_DEFINE)
#undef RUNNEL_SPECIAL_DEFINE

}  // namespace runnel::cpu
