#pragma once

#include "runnel/base/cpu.h"

// How one source serves several instruction sets: a kernel body is an always-inlined template, instantiated
// once inside a plain function and once inside a function marked RUNNEL_AVX2; `has_avx2()` picks at run time.

// Code in a function so marked may use AVX2, FMA and F16C; call it only where has_avx2() holds. Likewise AVX-512.
#define RUNNEL_AVX2 __attribute__((target("avx2,fma,f16c")))
#define RUNNEL_AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
// Inlines everything the function calls, so that the callee is compiled for the caller's instruction set.
#define RUNNEL_FLATTEN __attribute__((flatten))
#define RUNNEL_INLINE inline __attribute__((always_inline))

// Before a loop: iterations do not depend on each other (an output may still be exactly an input).
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // a loop that calls libm stays scalar, as it may
#define RUNNEL_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define RUNNEL_IVDEP _Pragma("GCC ivdep")
#endif
