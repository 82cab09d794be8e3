#include "runnel/kernels/cpu/cpu_isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace runnel::cpu {
namespace {

Isa detect() {
  __builtin_cpu_init();
  Isa isa = Isa::base;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    isa = Isa::avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      isa = Isa::avx512;
    }
  }
  if (const char* text = std::getenv("RUNNEL_MAX_ISA")) {
    const std::string_view name = text;
    if (name == "base") isa = Isa::base;
    if (name == "avx2") isa = std::min(isa, Isa::avx2);
  }
  return isa;
}

}  // namespace

Isa cpu_isa() {
  static const Isa isa = detect();
  return isa;
}

}  // namespace runnel::cpu
