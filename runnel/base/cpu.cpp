#include "runnel/base/cpu.h"

#include <cstdlib>
#include <string_view>

#include "runnel/base/format.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace runnel {

CpuFeatures detect_cpu(const char* isa) {
  CpuFeatures f;
#if defined(__x86_64__)
  __builtin_cpu_init();
  f.sse42 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  // clang's __builtin_cpu_supports does not know f16c: bit 29 of ecx, leaf 1.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1) != 0;
  f.avx2 = f.sse42 && f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  f.avx512 = f.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  f.avx512_bf16 = f.avx512 && __builtin_cpu_supports("avx512bf16");
#endif
  if (isa == nullptr) return f;
  const std::string_view level(isa);
  if (level == "baseline") return {};
  f.avx512_bf16 = false;
  if (level == "avx2") {
    f.avx512 = false;
  } else if (level != "avx512") {
    throw invalid_argument("RUNNEL_ISA must be baseline, avx2 or avx512, not '{}'", isa);
  }
  return f;
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect_cpu(std::getenv("RUNNEL_ISA"));
  return features;
}

}  // namespace runnel
