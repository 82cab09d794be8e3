#pragma once

#include "runnel/base/export.h"

namespace runnel {

// What kernels may use at run time, found once. RUNNEL_ISA=baseline|avx2|avx512 lowers it (never raises it),
// so that every path can be tested on one machine; avx512 is the level without bfloat16.
struct CpuFeatures {
  bool sse42 = false;        // SSE4.2 and PCLMUL
  bool avx2 = false;         // AVX2, FMA and F16C
  bool avx512 = false;       // AVX-512 F, BW, DQ and VL
  bool avx512_bf16 = false;  // products of bfloat16
};

// The machine's features, no higher than the level named by isa (null: no limit).
RUNNEL_API CpuFeatures detect_cpu(const char* isa);
RUNNEL_API const CpuFeatures& cpu_features();

inline bool has_sse42() { return cpu_features().sse42; }
inline bool has_avx2() { return cpu_features().avx2; }
inline bool has_avx512() { return cpu_features().avx512; }
inline bool has_avx512_bf16() { return cpu_features().avx512_bf16; }

}  // namespace runnel
