// Hyperbolic functions, and the inverses of these and of sine and cosine, for one instruction set (see foreach_isa.h).
// The same promise as vmath_isa.h; near 0 each is an odd polynomial.

// asin(s) for 0 <= s <= 9/16, given z = s^2.
VFN F asin_reduced(F s, F z) {
  return fma(s * z,
             poly(z, 0x1.555524p-3f, 0x1.3349c2p-4f, 0x1.6a4a26p-5f, 0x1.16fcbcp-5f, 0x1.b18872p-8f, 0x1.86161ep-5f),
             s);
}
// Beyond by the angle of a half: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)), with an exact 1 - a.
VFN F asin_of_half(F a, I beyond) {
  const F z = select(beyond, (1.0f - a) * 0.5f, a * a);
  return asin_reduced(select(beyond, sqrt(z), a), z);
}
VFN F asin(F x) {
  const F a = abs(x);
  const I beyond = a > 0.5625f;
  const F r = asin_of_half(a, beyond);
  // pi/2 in two steps: what is left of the first is exact.
  const F quarter = splat(0x1.921fb6p-1f), rest = quarter - 2.0f * r - 0x1.777a5cp-25f;
  return copysign(select(beyond, quarter + rest, r), x);
}
VFN F acos(F x) {
  const F a = abs(x);
  const I beyond = a > 0.5625f, left = x < 0.0f;
  const F r = asin_of_half(a, beyond);
  const F far = select(left, 0x1.921fb6p1f + (-0x1.777a5cp-24f - 2.0f * r), 2.0f * r);
  return select(beyond, far, from_half_pi(copysign(r, x)));
}

VFN F asinh(F x) {
  const F a = abs(x), z = a * a;
  const F small =
      fma(a * z, poly(z, -0x1.555522p-3f, 0x1.331e4p-4f, -0x1.6ae662p-5f, 0x1.c66e16p-6f, -0x1.993d8p-7f), a);
  const I huge = a > 0x1p60f;  // the square may be infinite; 1 no longer counts
  const F more = select(huge, a, a + z / (1.0f + sqrt(1.0f + z)));
  const F large = log1p(more) + select(huge, splat(0x1.62e430p-1f), splat(0.0f));
  return copysign(select(a > 0.53f, large, small), x);
}
VFN F acosh(F x) {
  const F t = x - 1.0f;
  const I huge = x > 0x1p60f;
  const F more = select(huge, x, t + sqrt(fma(t, t, 2.0f * t)));
  const F y = log1p(more) + select(huge, splat(0x1.62e430p-1f), splat(0.0f));
  return select(x >= 1.0f, y, splat(std::numeric_limits<float>::quiet_NaN()));
}
VFN F atanh(F x) {
  const F a = abs(x), z = a * a;
  const F small = fma(
      a * z, poly(z, 0x1.55553ep-2f, 0x1.99a72ap-3f, 0x1.23418cp-3f, 0x1.e4b81p-4f, 0x1.a1ac62p-5f, 0x1.6ae5fcp-3f), a);
  return copysign(select(a > 0.5f, 0.5f * log1p(2.0f * a / (1.0f - a)), small), x);
}

// A quarter of e^a for 0 <= a: finite wherever sinh and cosh are.
VFN F quarter_exp(F a) {
  I scaled;
  const F r = reduce_ln2(min(splat(90.0f), a), scaled);
  return exp_reduced(r) * from_bits(add_bits(scaled << 23, splat(125 << 23)));
}
VFN F sinh(F x) {
  const F a = abs(x), z = a * a;
  const F small = fma(a * z, poly(z, 0x1.555556p-3f, 0x1.111136p-7f, 0x1.9ffe12p-13f, 0x1.7a267cp-19f), a);
  const F q = quarter_exp(a);
  return copysign(select(a > 1.0f, 2.0f * (q - 0.0625f / q), small), x);
}
VFN F cosh(F x) {
  const F q = quarter_exp(abs(x));
  return 2.0f * (q + 0.0625f / q);
}
