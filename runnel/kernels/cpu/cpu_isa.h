#pragma once

#include "runnel/base/export.h"

namespace runnel::cpu {

// The widest instruction set our own kernels may use on this machine. RUNNEL_MAX_ISA=base|avx2|avx512 lowers it
// (for tests and comparisons); it is read once.
enum class Isa { base = 0, avx2 = 1, avx512 = 2 };
RUNNEL_API Isa cpu_isa();

}  // namespace runnel::cpu

#define RUNNEL_TARGET_AVX2 __attribute__((target("avx2,fma")))
#define RUNNEL_TARGET_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")))
