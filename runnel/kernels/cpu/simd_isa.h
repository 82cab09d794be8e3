// The float vector of one instruction set (see foreach_isa.h): F holds W floats, I as many int32. Arithmetic
// and comparisons are the compiler's own vector operators; a comparison gives an I of 0 and -1.

#if RUNNEL_ISA_AVX512
inline constexpr int W = 16;
#elif RUNNEL_ISA_AVX2
inline constexpr int W = 8;
#else
inline constexpr int W = 4;
#endif
typedef float F __attribute__((vector_size(W * 4)));
typedef int32_t I __attribute__((vector_size(W * 4)));

VFN F splat(float x) { return x - F{}; }
VFN I splat(int32_t x) { return x - I{}; }
VFN I bits(F x) { return (I)x; }
VFN F from_bits(I x) { return (F)x; }
// Sums of encodings, modulo 2^32.
typedef uint32_t U __attribute__((vector_size(W * 4)));
VFN I add_bits(I a, I b) { return (I)((U)a + (U)b); }
VFN I sub_bits(I a, I b) { return (I)((U)a - (U)b); }
VFN F select(I mask, F a, F b) { return mask ? a : b; }
VFN I select(I mask, I a, I b) { return mask ? a : b; }
VFN F to_float(I x) { return __builtin_convertvector(x, F); }
VFN F abs(F x) { return from_bits(bits(x) & 0x7fffffff); }
VFN F copysign(F x, F sign) { return from_bits((bits(x) & 0x7fffffff) | (bits(sign) & int32_t(0x80000000))); }
VFN F pow2(I k) { return from_bits((k + 127) << 23); }  // -126 <= k <= 127

#if RUNNEL_ISA_AVX512

VFN F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }  // one rounding
// With a full mask, because GCC warns of an uninitialised value inside the plain forms.
VFN F sqrt(F x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
// The second operand where one is NaN.
VFN F min(F a, F b) { return _mm512_maskz_min_ps(0xffff, a, b); }
VFN F max(F a, F b) { return _mm512_maskz_max_ps(0xffff, a, b); }
VFN bool all(I mask) { return _mm512_movepi32_mask((__m512i)mask) == 0xffff; }
VFN bool any(I mask) { return _mm512_movepi32_mask((__m512i)mask) != 0; }
VFN F load(const float* p) { return _mm512_loadu_ps(p); }
VFN void store(float* p, F x) { _mm512_storeu_ps(p, x); }
VFN __mmask16 lane_bits(int64_t n) { return static_cast<__mmask16>((1 << n) - 1); }
VFN I first_lanes(int64_t n) { return (I)_mm512_movm_epi32(lane_bits(n)); }
// The first n < W elements; the other lanes are 0.
VFN F load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(lane_bits(n), p); }
VFN void store_n(float* p, F x, int64_t n) { _mm512_mask_storeu_ps(p, lane_bits(n), x); }

#elif RUNNEL_ISA_AVX2

VFN F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }  // one rounding
VFN F sqrt(F x) { return _mm256_sqrt_ps(x); }
// The second operand where one is NaN.
VFN F min(F a, F b) { return _mm256_min_ps(a, b); }
VFN F max(F a, F b) { return _mm256_max_ps(a, b); }
VFN bool all(I mask) { return _mm256_movemask_ps((F)mask) == 0xff; }
VFN bool any(I mask) { return _mm256_movemask_ps((F)mask) != 0; }
VFN F load(const float* p) { return _mm256_loadu_ps(p); }
VFN void store(float* p, F x) { _mm256_storeu_ps(p, x); }
VFN I first_lanes(int64_t n) {
  const I index = {0, 1, 2, 3, 4, 5, 6, 7};
  return index < static_cast<int32_t>(n);
}
// The first n < W elements; the other lanes are 0.
VFN F load_n(const float* p, int64_t n) { return _mm256_maskload_ps(p, (__m256i)first_lanes(n)); }
VFN void store_n(float* p, F x, int64_t n) { _mm256_maskstore_ps(p, (__m256i)first_lanes(n), x); }

#else

VFN F fma(F a, F b, F c) { return a * b + c; }  // two roundings
VFN F sqrt(F x) { return _mm_sqrt_ps(x); }
VFN F min(F a, F b) { return _mm_min_ps(a, b); }
VFN F max(F a, F b) { return _mm_max_ps(a, b); }
VFN bool all(I mask) { return _mm_movemask_ps((F)mask) == 0xf; }
VFN bool any(I mask) { return _mm_movemask_ps((F)mask) != 0; }
VFN F load(const float* p) { return _mm_loadu_ps(p); }
VFN void store(float* p, F x) { _mm_storeu_ps(p, x); }
VFN I first_lanes(int64_t n) {
  const I index = {0, 1, 2, 3};
  return index < static_cast<int32_t>(n);
}
VFN F load_n(const float* p, int64_t n) {
  F x = {};
  for (int64_t i = 0; i < n; ++i) x[i] = p[i];
  return x;
}
VFN void store_n(float* p, F x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = x[i];
}

#endif

// NaN if either is.
VFN F max_nan(F a, F b) { return select(a != a, a, max(a, b)); }

// All lanes, in a fixed order: halves are folded onto each other.
VFN float sum(F x) {
  for (int half = W / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x[i] += x[i + half];
  }
  return x[0];
}
VFN float max_nan(F x) {
  float m = x[0];
  for (int i = 1; i < W; ++i) m = m != m ? m : (x[i] <= m ? m : x[i]);
  return m;
}
