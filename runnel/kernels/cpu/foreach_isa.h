// Compiles the file RUNNEL_ISA_FILE once per instruction set, in namespaces runnel::cpu::base and ::avx2, and with
// RUNNEL_ISA_WITH_AVX512 in ::avx512, after the vector type and the vector mathematics of that set. For .cpp files
// only; no include guard on purpose: a compiler lets vectors pass between functions only where both are compiled for
// the same instruction set, so templates over the vector type cannot do this.
//
//   #define RUNNEL_ISA_FILE "runnel/kernels/cpu/name_isa.h"
//   #include "runnel/kernels/cpu/foreach_isa.h"
//
// RUNNEL_BEST_ISA(name) is the name in the best namespace that this machine runs. AVX-512 is for functions of single
// elements, whose bits are those of AVX2; those of a sum over lanes would not be.
//
// In the file, functions are marked RUNNEL_ISA_TARGET, inline helpers VFN.

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runnel/kernels/cpu/isa.h"

#define VFN static inline __attribute__((always_inline)) RUNNEL_ISA_TARGET

#define RUNNEL_ISA_AVX512 0
#define RUNNEL_ISA_AVX2 0
#define RUNNEL_ISA_TARGET
namespace runnel::cpu::base {
#include "runnel/kernels/cpu/simd_isa.h"
#include "runnel/kernels/cpu/vmath_isa.h"
#include RUNNEL_ISA_FILE
}  // namespace runnel::cpu::base
#undef RUNNEL_ISA_AVX2
#undef RUNNEL_ISA_TARGET

#define RUNNEL_ISA_AVX2 1
#define RUNNEL_ISA_TARGET RUNNEL_AVX2
namespace runnel::cpu::avx2 {
#include "runnel/kernels/cpu/simd_isa.h"
#include "runnel/kernels/cpu/vmath_isa.h"
#include RUNNEL_ISA_FILE
}  // namespace runnel::cpu::avx2
#undef RUNNEL_ISA_AVX512
#undef RUNNEL_ISA_TARGET

#ifdef RUNNEL_ISA_WITH_AVX512
#define RUNNEL_ISA_AVX512 1
#define RUNNEL_ISA_TARGET RUNNEL_AVX512
namespace runnel::cpu::avx512 {
#include "runnel/kernels/cpu/simd_isa.h"
#include "runnel/kernels/cpu/vmath_isa.h"
#include RUNNEL_ISA_FILE
}  // namespace runnel::cpu::avx512
#undef RUNNEL_ISA_AVX512
#undef RUNNEL_ISA_TARGET
#define RUNNEL_BEST_ISA(name) (has_avx512() ? avx512::name : has_avx2() ? avx2::name : base::name)
#else
#define RUNNEL_BEST_ISA(name) (has_avx2() ? avx2::name : base::name)
#endif
#undef RUNNEL_ISA_AVX2
