#include "runnel/kernels/cpu/activations.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/activations_isa.h"
#define RUNNEL_ISA_WITH_AVX512
#include "runnel/base/cpu.h"
#include "runnel/kernels/cpu/array_form.h"
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {

#define RUNNEL_ACTIVATION_DEFINE(name, Name) \
  void v##name(const float* x, float* y, int64_t n) { RUNNEL_BEST_ISA(name##_array)(x, y, n); }
RUNNEL_ACTIVATIONS(RUNNEL_ACTIVATION_DEFINE)
#undef RUNNEL_ACTIVATION_DEFINE

void vsigmoid_times(const float* dy, const float* x, float* y, int64_t n) {
  RUNNEL_BEST_ISA(sigmoid_times_array)(dy, x, y, n);
}

}  // namespace runnel::cpu
