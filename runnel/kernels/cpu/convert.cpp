#include "runnel/kernels/cpu/convert.h"

#include <immintrin.h>

#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu {
namespace {

RUNNEL_AVX2 void convert_avx2(const Half* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
  for (; i < n; ++i) y[i] = _cvtsh_ss(x[i].bits());
}

RUNNEL_AVX2 void convert_avx2(const float* x, Half* y, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) y[i] = Half::from_bits(_cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT));
}

// The types' own conversions are straight-line code, which vectorises.
template <class From, class To>
RUNNEL_INLINE void convert_each(const From* x, To* y, int64_t n) {
  RUNNEL_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
}
RUNNEL_AVX2 void convert_avx2(const BFloat16* x, float* y, int64_t n) { convert_each(x, y, n); }
RUNNEL_AVX2 void convert_avx2(const float* x, BFloat16* y, int64_t n) { convert_each(x, y, n); }

}  // namespace

void convert_block(const Half* x, float* y, int64_t n) {
  if (has_avx2()) return convert_avx2(x, y, n);
  convert_each(x, y, n);
}

void convert_block(const float* x, Half* y, int64_t n) {
  if (has_avx2()) return convert_avx2(x, y, n);
  convert_each(x, y, n);
}

void convert_block(const BFloat16* x, float* y, int64_t n) {
  if (has_avx2()) return convert_avx2(x, y, n);
  convert_each(x, y, n);
}

void convert_block(const float* x, BFloat16* y, int64_t n) {
  if (has_avx2()) return convert_avx2(x, y, n);
  convert_each(x, y, n);
}

}  // namespace runnel::cpu
