#include "runnel/kernels/cpu/activations.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/activations_isa.h"
#include "runnel/base/cpu.h"
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {

#define RUNNEL_ACTIVATION_DEFINE(name, Name)                                \
  void v##name(const float* x, float* y, int64_t n) {                       \
    has_avx2() ? avx2::name##_array(x, y, n) : base::name##_array(x, y, n); \
  }
RUNNEL_ACTIVATIONS(RUNNEL_ACTIVATION_DEFINE)
#undef RUNNEL_ACTIVATION_DEFINE

void vsigmoid_times(const float* dy, const float* x, float* y, int64_t n) {
  has_avx2() ? avx2::sigmoid_times_array(dy, x, y, n) : base::sigmoid_times_array(dy, x, y, n);
}

}  // namespace runnel::cpu
