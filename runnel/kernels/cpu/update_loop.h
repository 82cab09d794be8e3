#pragma once

// body(i) for i in [begin, end), compiled for AVX2 and for the baseline. The body is copied: what it writes cannot then
// be taken for its own members, which would keep the loop from becoming vectors.
#include <cstdint>
#include <type_traits>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/loops.h"

namespace runnel::cpu {

template <class Body>
RUNNEL_FLATTEN void update_range_base(const Body& given, int64_t begin, int64_t end) {
  const Body body = given;
  RUNNEL_IVDEP
  for (int64_t i = begin; i < end; ++i) body(i);
}
template <class Body>
RUNNEL_AVX2 RUNNEL_FLATTEN void update_range_avx2(const Body& given, int64_t begin, int64_t end) {
  const Body body = given;
  RUNNEL_IVDEP
  for (int64_t i = begin; i < end; ++i) body(i);
}

// On the calling thread. T is the element type: those that loops.h has AVX2 versions for have one here.
template <class T, class Body>
void update_range(int64_t begin, int64_t end, const Body& body) {
  if constexpr (detail::has_wide_clone<T>) {
    if (has_avx2()) return update_range_avx2(body, begin, end);
  }
  update_range_base(body, begin, end);
}

}  // namespace runnel::cpu
