// A sieve for one instruction set (see foreach_isa.h).

VFN uint32_t lanes_of(I mask) {
#if RUNNEL_ISA_AVX512
  return _mm512_movepi32_mask((__m512i)mask);
#elif RUNNEL_ISA_AVX2
  return static_cast<uint32_t>(_mm256_movemask_ps((F)mask));
#else
  return static_cast<uint32_t>(_mm_movemask_ps((F)mask));
#endif
}

// Writes down which of x[0..n) are greater than the limit, in order; says how many. `at` has room for n.
RUNNEL_ISA_TARGET int64_t greater_than(const float* x, int64_t n, float limit, uint32_t* at) {
  int64_t count = 0, i = 0;
  const F bound = splat(limit);
  for (; i + W <= n; i += W) {
    for (uint32_t lanes = lanes_of(load(x + i) > bound); lanes != 0; lanes &= lanes - 1) {
      at[count++] = static_cast<uint32_t>(i + std::countr_zero(lanes));
    }
  }
  for (; i < n; ++i) {
    if (x[i] > limit) at[count++] = static_cast<uint32_t>(i);
  }
  return count;
}
