// The double vector of one instruction set: D holds as many bytes as F, so half as many numbers, L as many int64.
// Include it in a file of foreach_isa.h.

typedef double D __attribute__((vector_size(W * 4)));
typedef int64_t L __attribute__((vector_size(W * 4)));
typedef uint64_t UL __attribute__((vector_size(W * 4)));

VFN D splat(double x) { return x - D{}; }
VFN L splat(int64_t x) { return x - L{}; }
VFN L bits(D x) { return (L)x; }
VFN D from_bits(L x) { return (D)x; }
VFN D select(L mask, D a, D b) { return mask ? a : b; }
VFN D abs(D x) { return from_bits(bits(x) & 0x7fffffffffffffff); }

// The halves of a float vector, and a float vector of two halves. With full masks as in simd_isa.h.
#if RUNNEL_ISA_AVX512
VFN D low_half(F x) { return _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x, 0)); }
VFN D high_half(F x) { return _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x, 1)); }
VFN F joined(D low, D high) {
  const F x = _mm512_maskz_insertf32x8(0xffff, F{}, _mm512_maskz_cvtpd_ps(0xff, low), 0);
  return _mm512_maskz_insertf32x8(0xffff, x, _mm512_maskz_cvtpd_ps(0xff, high), 1);
}
VFN D fma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }  // one rounding
VFN bool all(L mask) { return _mm512_movepi64_mask((__m512i)mask) == 0xff; }
VFN D load(const double* p) { return _mm512_loadu_pd(p); }
VFN void store(double* p, D x) { _mm512_storeu_pd(p, x); }
VFN bool any(L mask) { return _mm512_movepi64_mask((__m512i)mask) != 0; }
#elif RUNNEL_ISA_AVX2
VFN D low_half(F x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
VFN D high_half(F x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
VFN F joined(D low, D high) { return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)); }
VFN D fma(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }  // one rounding
VFN bool all(L mask) { return _mm256_movemask_pd((D)mask) == 0xf; }
VFN D load(const double* p) { return _mm256_loadu_pd(p); }
VFN void store(double* p, D x) { _mm256_storeu_pd(p, x); }
VFN bool any(L mask) { return _mm256_movemask_pd((D)mask) != 0; }
#else
VFN D low_half(F x) { return _mm_cvtps_pd(x); }
VFN D high_half(F x) { return _mm_cvtps_pd(_mm_movehl_ps(x, x)); }
VFN F joined(D low, D high) { return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high)); }
VFN D fma(D a, D b, D c) { return a * b + c; }  // two roundings
VFN bool all(L mask) { return _mm_movemask_pd((D)mask) == 0x3; }
VFN D load(const double* p) { return _mm_loadu_pd(p); }
VFN void store(double* p, D x) { _mm_storeu_pd(p, x); }
VFN bool any(L mask) { return _mm_movemask_pd((D)mask) != 0; }
#endif

// The first n elements, fewer than a vector; the other lanes are 0.
VFN D load_n(const double* p, int64_t n) {
  D x = {};
  for (int64_t i = 0; i < n; ++i) x[i] = p[i];
  return x;
}
VFN void store_n(double* p, D x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = x[i];
}
// All lanes, in a fixed order: halves are folded onto each other.
VFN double sum(D x) {
  for (int half = W / 4; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x[i] += x[i + half];
  }
  return x[0];
}

// For what is written once for float and double.
template <class T>
inline constexpr int kLanes = sizeof(T) == sizeof(float) ? W : W / 2;

VFN D poly(D x, double a, double b) { return fma(splat(b), x, splat(a)); }
template <class... C>
VFN D poly(D x, double a, double b, C... rest) {
  return fma(poly(x, b, rest...), x, splat(a));
}

// The nearest whole number; of two the even one.
VFN D nearest(D x) { return select(abs(x) < 0x1p51, x + 0x1.8p52 - 0x1.8p52, x); }

// For |x| <= 700: to 40 bits.
VFN D exp(D x) {
  const D t = fma(x, splat(0x1.71547652b82fep0), splat(0x1.8p52));
  const D n = t - 0x1.8p52;
  const D r = fma(n, splat(-0x1.62e42fefa39efp-1), x);
  const D p = poly(r, 0x1.ffffffffff78ep-1, 0x1.ffffffffd50dp-1, 0x1.00000000890adp-1, 0x1.555555a0f4687p-3,
                   0x1.555554030ac46p-5, 0x1.1110821e4844bp-7, 0x1.6c18b53b1be4dp-10, 0x1.a1a8e6b69bf35p-13,
                   0x1.9ed9ec95ece0ep-16);
  return from_bits((L)((UL)bits(p) + ((UL)bits(t) << 52)));
}

// Of positive normal numbers: to 50 bits, relative to the result near 1 too.
VFN D log(D x) {
  const UL scaled = ((UL)bits(x) - (UL)splat(int64_t{0x3fe6a09e667f3bcd})) & (UL)splat(int64_t(0xfff0000000000000));
  const D m = from_bits((L)((UL)bits(x) - scaled));  // sqrt(1/2) <= m < sqrt(2)
  // The exponent, made positive, as the low digits of 2^52.
  const UL exponent = (scaled + (UL)splat(int64_t{1023} << 52)) >> 52;
  const D k = from_bits((L)(exponent | (UL)splat(int64_t{0x4330000000000000}))) - (0x1p52 + 1023);
  const D s = (m - 1.0) / (m + 1.0), z = s * s;
  const D tail = s * z *
                 poly(z, 0x1.555555555394dp-1, 0x1.999999a299c32p-2, 0x1.2492417363034p-2, 0x1.c7227aa4c886bp-3,
                      0x1.732bce5539033p-3, 0x1.587bc992a7b1dp-3);
  return fma(k, splat(0x1.62e42fefa39efp-1), fma(splat(2.0), s, tail));
}
