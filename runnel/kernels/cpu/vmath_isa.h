// Elementary functions of one float vector (see foreach_isa.h). Within 2 units in the last place over all
// floats, right for NaN, infinities, zeros and denormals; the tests measure it. A lane's result depends on
// that lane alone. Polynomials are minimax fits of relative error, made for these intervals and coefficient
// roundings.

VFN F poly(F x, float a, float b) { return fma(splat(b), x, splat(a)); }
template <class... C>
VFN F poly(F x, float a, float b, C... rest) {
  return fma(poly(x, b, rest...), x, splat(a));
}

// x = n ln2 + r with |r| <= ln2 / 2. The last 9 bits of `scaled` are n's, so scaled << 23 adds n to an
// exponent.
VFN F reduce_ln2(F x, I& scaled) {
  const F magic = splat(0x1.8p23f);  // adding it leaves the nearest integer in the low mantissa bits
  const F t = fma(x, splat(0x1.715476p0f), magic);
  scaled = bits(t);
  const F n = t - magic;
  const F r = fma(n, splat(-0x1.63p-1f), x);  // the leading part of ln2 is short: n times it is exact
  return fma(n, splat(0x1.bd0106p-13f), r);
}

VFN F exp_reduced(F r) {
  return poly(r, 1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.5558b8p-5f, 0x1.123e5ap-7f, 0x1.6a4dbp-10f);
}

// For |x| <= 87: the result is a normal number.
VFN F exp_normal(F x) {
  I scaled;
  const F r = reduce_ln2(x, scaled);
  return from_bits(add_bits(bits(exp_reduced(r)), scaled << 23));
}

// The same bits as exp_normal where that is defined; everything else as it should be.
VFN F exp_any(F x) {
  x = max(splat(-104.0f), min(splat(89.0f), x));
  I scaled;
  const F r = reduce_ln2(x, scaled);
  const I k = (scaled << 23) >> 23;
  const I half = k >> 1;  // in two steps: 2^k itself may be infinite, or denormal
  return exp_reduced(r) * pow2(half) * pow2(k - half);
}

VFN F exp(F x) {
  if (__builtin_expect(all(abs(x) <= 87.0f), 1)) return exp_normal(x);
  return exp_any(x);
}

// e^r - 1 for |r| <= ln2 / 2, relative to itself.
VFN F expm1_reduced(F r) {
  const F q = poly(r, 0x1.fffffep-2f, 0x1.5554acp-3f, 0x1.555702p-5f, 0x1.122b98p-7f, 0x1.6b906cp-10f);
  return fma(r * r, q, r);
}

VFN F expm1(F x) {
  I scaled;
  const F r = reduce_ln2(max(splat(-20.0f), min(splat(89.0f), x)), scaled);
  const F s = from_bits(add_bits(scaled << 23, splat(126 << 23)));  // half of 2^n: n may be 128
  const F y = fma(expm1_reduced(r), s, s - 0.5f) * 2.0f;
  return select(abs(x) < 0x1p-25f, x, y);
}

// With h = expm1(-2 |x|) / 2: tanh |x| = -h / (h + 1). The reduction is that of exp halved, and one constant
// for ln2 is enough: where n is large, e^(-2 |x|) is small.
VFN F tanh(F x) {
  const F a = max(splat(-10.0f), from_bits(bits(x) | int32_t(0x80000000)));
  const F magic = splat(0x1.8p23f);
  const F t = fma(a, splat(0x1.715476p1f), magic);
  const F r = fma(t - magic, splat(-0x1.62e430p-2f), a);
  const F q = poly(r, 0x1.fffffep-1f, 0x1.5554acp-1f, 0x1.555702p-2f, 0x1.122b98p-3f, 0x1.6b906cp-5f);
  const F s = from_bits(add_bits(bits(t) << 23, splat(127 << 23)));
  const F h = fma(fma(r * r, q, r), s, fma(s, splat(0.5f), splat(-0.5f)));
  return copysign(h / (h + 1.0f), x);
}

VFN F sigmoid(F x) {
  const F e = exp(-abs(x));
  return select(x < 0.0f, e, splat(1.0f)) / (1.0f + e);
}

// log(1 + f) + k ln2 for sqrt(1/2) <= 1 + f <= sqrt(2), given k as k 2^23. The float nearest to ln2 is good to 28 bits.
VFN F log_reduced(F f, I scaled) {
  const F q = poly(f, -0.5f, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a01cp-3f, -0x1.54728ap-3f, 0x1.22d932p-3f,
                   -0x1.0d824ap-3f, 0x1.055e98p-3f, -0x1.38c91p-4f);
  return fma(to_float(scaled), splat(0x1.62e430p-24f), fma(f * f, q, f));
}

// u = m 2^k with sqrt(1/2) <= m < sqrt(2), for normal u > 0; returns k 2^23, what k adds to an encoding.
VFN I split_exponent(F u, F& m) {
  const I scaled = sub_bits(bits(u), splat(0x3f3504f3)) & int32_t(0xff800000);
  m = from_bits(sub_bits(bits(u), scaled));
  return scaled;
}

VFN F log_normal(F x) {  // x positive, normal and finite
  F m;
  const I scaled = split_exponent(x, m);
  return log_reduced(m - 1.0f, scaled);
}

// The same bits as log_normal where that is defined; everything else as it should be.
VFN F log_any(F x) {
  const float inf = std::numeric_limits<float>::infinity();
  const I denormal = x < std::numeric_limits<float>::min();
  F m;
  I scaled = split_exponent(select(denormal, x * 0x1p23f, x), m);
  scaled = add_bits(scaled, denormal & -23 * (1 << 23));
  F y = log_reduced(m - 1.0f, scaled);
  y = select(x == inf, x, y);
  y = select(x == 0.0f, splat(-inf), y);
  return select(x >= 0.0f, y, splat(std::numeric_limits<float>::quiet_NaN()));
}

VFN F log(F x) {
  // Zero, denormals and negative numbers are caught by the one sum's sign, infinity and NaN by the other's.
  const I special = sub_bits(bits(x), splat(0x00800000)) | add_bits(bits(x), splat(0x00800000));
  if (__builtin_expect(!any(special), 1)) return log_normal(x);
  return log_any(x);
}

VFN F log1p(F x) {
  const float inf = std::numeric_limits<float>::infinity();
  const F u = 1.0f + x;
  const F lost = select(x >= 1.0f, 1.0f - (u - x), x - (u - 1.0f));  // what the rounding of 1 + x took away
  F m;
  const I scaled = split_exponent(u, m);
  const F scaled_lost = select(x > 0x1p30f, splat(0.0f), lost * from_bits(sub_bits(splat(127 << 23), scaled)));
  F y = log_reduced(m - 1.0f + scaled_lost, scaled);
  y = select(abs(x) < 0x1p-25f, x, y);
  y = select(x == inf, x, y);
  y = select(x == -1.0f, splat(-inf), y);
  return select(x >= -1.0f, y, splat(std::numeric_limits<float>::quiet_NaN()));
}

// x = n pi/2 + r with |r| <= pi/4 (and a little); right up to |x| = 2^17, above which n is too large.
inline constexpr float kMaxReduced = 0x1p17f;
VFN void reduce_pio2(F x, F& r, I& n) {
  const F magic = splat(0x1.8p23f);
  const F t = fma(x, splat(0x1.45f306p-1f), magic);
  const F k = t - magic;
  n = sub_bits(bits(t), bits(magic));
#if RUNNEL_ISA_AVX2
  r = fma(k, splat(-0x1.921fb4p0f), x);
  r = fma(k, splat(-0x1.4442d0p-24f), r);
  r = fma(k, splat(-0x1.846988p-48f), r);
#else
  typedef double D __attribute__((vector_size(W * 8)));
  const D dk = __builtin_convertvector(k, D);
  const D d = __builtin_convertvector(x, D) - dk * 0x1.921fb544p0 - dk * 0x1.0b4611a626331p-34;
  r = __builtin_convertvector(d, F);
#endif
}

VFN F sin_reduced(F r) {
  const F z = r * r;
  return fma(r * z, poly(z, -0x1.555546p-3f, 0x1.11077ap-7f, -0x1.9954a8p-13f), r);
}
VFN F cos_reduced(F r) {
  const F z = r * r;
  const F tail = z * z * poly(z, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e818p-16f);
  return fma(z, splat(-0.5f), tail) + 1.0f;
}

// sin(x + quadrants pi/2); sin is quadrants = 0, cos is 1.
VFN F sin_quadrant(F x, int quadrants) {
  F r;
  I n;
  reduce_pio2(x, r, n);
  n = n + quadrants;
  const F y = select((n & 1) != 0, cos_reduced(r), sin_reduced(r));
  return from_bits(bits(y) ^ ((n & 2) << 30));
}

VFN F sin(F x) {
  F y = select(abs(x) < 0x1p-13f, x, sin_quadrant(x, 0));
  if (const I large = abs(x) > kMaxReduced; __builtin_expect(any(large), 0)) {
    for (int i = 0; i < W; ++i) y[i] = large[i] ? static_cast<float>(std::sin(static_cast<double>(x[i]))) : y[i];
  }
  return y;
}
VFN F cos(F x) {
  F y = sin_quadrant(x, 1);
  if (const I large = abs(x) > kMaxReduced; __builtin_expect(any(large), 0)) {
    for (int i = 0; i < W; ++i) y[i] = large[i] ? static_cast<float>(std::cos(static_cast<double>(x[i]))) : y[i];
  }
  return y;
}

VFN F tan(F x) {
  F r;
  I n;
  reduce_pio2(x, r, n);
  const F z = r * r;
  const F t = fma(r * z,
                  poly(z, 0x1.555560p-2f, 0x1.110d88p-3f, 0x1.badd12p-5f, 0x1.5ca318p-6f, 0x1.63561cp-7f,
                       0x1.4ac23ap-14f, 0x1.1f2868p-8f),
                  r);
  F y = select(abs(x) < 0x1p-13f, x, select((n & 1) != 0, -1.0f / t, t));
  if (const I large = abs(x) > kMaxReduced; __builtin_expect(any(large), 0)) {
    for (int i = 0; i < W; ++i) y[i] = large[i] ? static_cast<float>(std::tan(static_cast<double>(x[i]))) : y[i];
  }
  return y;
}

VFN F atan_reduced(F t) {  // |t| <= 1
  const F z = t * t;
  return fma(t * z,
             poly(z, -0x1.55553ep-2f, 0x1.9991fep-3f, -0x1.2421b6p-3f, 0x1.c099fep-4f, -0x1.583492p-4f, 0x1.dac9e8p-5f,
                  -0x1.fed168p-6f, 0x1.65a666p-7f, -0x1.d630p-10f),
             t);
}
// pi/2 - r; of both constants the first holds the leading digits.
VFN F from_half_pi(F r) { return 0x1.921fb6p0f + (-0x1.777a5cp-25f - r); }
VFN F atan(F x) {
  const F a = abs(x);
  const I beyond = a > 1.0f;
  const F r = atan_reduced(select(beyond, 1.0f / a, a));
  return copysign(select(beyond, from_half_pi(r), r), x);
}
// The angle of the point (x, y).
VFN F atan2(F y, F x) {
  const F ax = abs(x), ay = abs(y);
  const I steep = ay > ax;
  const F longer = select(steep, ay, ax);
  F t = select(steep, ax, ay) / longer;
  t = select(ax == ay, select(longer == 0.0f, splat(0.0f), splat(1.0f)), t);  // also of two infinities
  const F r = atan_reduced(t);
  // pi/2 - r and pi/2 + r where it is steep, else r and pi - r: rounded once.
  const I left = bits(x) < 0;
  const F corner = select(steep, splat(0x1.921fb6p0f), select(left, splat(0x1.921fb6p1f), splat(0.0f)));
  const F rest = select(steep, splat(-0x1.777a5cp-25f), select(left, splat(-0x1.777a5cp-24f), splat(0.0f)));
  const F angle = corner + (rest + select(steep == left, r, -r));
  return select((x != x) | (y != y), x + y, copysign(angle, y));
}

VFN F erf(F x) {
  const F a = abs(x);
  const F small = fma(x,
                      poly(x * x, 0x1.06eba8p-3f, -0x1.812740p-2f, 0x1.ce2d64p-4f, -0x1.b80116p-6f, 0x1.5449b4p-8f,
                           -0x1.a603f2p-11f, 0x1.4f48cap-14f),
                      x);
  const F b = min(splat(3.95f), a);  // from here on erf rounds to 1
  const F log_erfc = b * poly(b, -0x1.20e8c8p0f, -0x1.45708cp-1f, -0x1.af29fp-4f, 0x1.73869cp-6f, -0x1.8038dep-9f,
                              0x1.a3a2f2p-15f, 0x1.7da7aep-15f, -0x1.4af2p-18f);
  const F large = copysign(1.0f - exp_normal(log_erfc), x);
  return select(a >= 0.925f, large, small);  // NaN goes the small way
}
