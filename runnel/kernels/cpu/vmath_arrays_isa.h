// The array forms of vmath.h for one instruction set (see foreach_isa.h). The tail goes through the same
// vector code as the rest, so that an element's bits do not depend on its place.

VFN F rsqrt(F x) { return 1.0f / sqrt(x); }

#define RUNNEL_VMATH_ARRAY(name, Name)                                       \
  RUNNEL_ISA_TARGET void name##_array(const float* x, float* y, int64_t n) { \
    int64_t i = 0;                                                           \
    for (; i + W <= n; i += W) store(y + i, name(load(x + i)));              \
    if (i < n) store_n(y + i, name(load_n(x + i, n - i)), n - i);            \
  }
RUNNEL_VMATH_FUNCTIONS(RUNNEL_VMATH_ARRAY)
#undef RUNNEL_VMATH_ARRAY

RUNNEL_ISA_TARGET void atan2_array(const float* y, const float* x, float* angle, int64_t n) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(angle + i, atan2(load(y + i), load(x + i)));
  if (i < n) store_n(angle + i, atan2(load_n(y + i, n - i), load_n(x + i, n - i)), n - i);
}
