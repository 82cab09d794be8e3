// The special functions of special.h for one instruction set (see foreach_isa.h), within 2 units in the last place over
// all floats. Most compute in double: sums of large numbers leave small results. A lane's result depends on that lane
// alone.

#include "runnel/kernels/cpu/simd_double_isa.h"

// e^(x^2) erfc(x) (1 + x / 2) is a smooth function of 1 / (1 + x / 2).
VFN D erfc(D x) {
  const D a = select(abs(x) < 26.0, abs(x), splat(26.0));  // erfc(26) is 0 as a float
  const D t = 1.0 / fma(a, splat(0.5), splat(1.0));
  const D smooth = poly(t, -0x1.43f833bfe840cp+0, 0x1.ffe2eb9d13193p-1, 0x1.83a9145014ebap-2, 0x1.95beb46e5feb5p-5,
                        0x1.f811e5b7e9c77p-4, -0x1.088990edc1403p+0, 0x1.49a172bbc4a1cp+1, -0x1.672b9bddd81fap+2,
                        0x1.0c18fae9f4503p+3, -0x1.f05596032f954p+2, 0x1.154c838f4805ep+2, -0x1.5aac84f19e9d1p+0,
                        0x1.775bb9f22f34ap-3);
  const D above = t * exp(fma(-a, a, smooth));
  const D y = select(x < 0.0, 2.0 - above, above);
  return select(x != x, x, y);
}
VFN F erfc(F x) { return joined(erfc(low_half(x)), erfc(high_half(x))); }

// By -log(1 - x^2): up to 5 the quotient by x, then itself, a function of the root.
VFN F erfinv(F x) {
  const float inf = std::numeric_limits<float>::infinity();
  const F w = -log((1.0f - x) * (1.0f + x));
  const F quotient =
      poly(w, -0x1.d203b8p-4f, 0x1.db2a1p-3f, 0x1.7a6d22p-7f, -0x1.31f5fap-9f, -0x1.0b593ap-13f, 0x1.75d72ap-15f,
           0x1.0b4f44p-18f, -0x1.09469ap-19f, 0x1.daa8a6p-23f, -0x1.2e0e7ep-27f);  // less 1
  const F far = poly(sqrt(w) - 3.0f, 0x1.6a9942p+1f, 0x1.00ae7cp+0f, 0x1.c07bb6p-8f, -0x1.c3a11p-9f, 0x1.2c417cp-10f,
                     -0x1.cb9312p-13f, -0x1.78d2e8p-15f, 0x1.cb9c88p-15f, -0x1.ea4458p-17f);
  const F y = select(abs(x) == 1.0f, splat(inf), select(w > 5.0f, far, fma(x, quotient, x)));
  return copysign(y, x);
}

// sin(pi t) and cos(pi t) for |t| <= 1/2, given z = t^2.
VFN D sin_of_pi(D t, D z) {
  return t * poly(z, 0x1.921fb54442d17p+1, -0x1.4abbce625bd5ep+2, 0x1.466bc67751057p+1, -0x1.32d2cce17d319p-1,
                  0x1.50783249cee89p-4, -0x1.e30623c317a4cp-8, 0x1.e89ce9fc86de8p-12, -0x1.626263e789c11p-16);
}
VFN D cos_of_pi(D z) {
  return poly(z, 1.0, -0x1.3bd3cc9be45dbp+2, 0x1.03c1f081b5993p+2, -0x1.55d3c7e3bfc44p+0, 0x1.e1f506813c9d8p-3,
              -0x1.a6d1efc968ab7p-6, 0x1.f9d25488f0f38p-10, -0x1.b69582d55d62cp-14, 0x1.16797108b9155p-18);
}

// For finite a > 0. Stirling's series, after a step of 8 where a is small; between the zeros at 1 and 2, and a little
// beyond, a polynomial between these factors.
VFN D log_gamma_positive(D a) {
  const L small = a < 8.0;
  D product = splat(1.0);
  for (int k = 0; k < 8; ++k) product = product * (a + static_cast<double>(k));
  const D z = select(small, a + 8.0, a), inverse = 1.0 / z;
  const D series = inverse * poly(inverse * inverse, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188,
                                  -691.0 / 360360, 1.0 / 156);
  const D stirling = fma(z - 0.5, log(z), series - z) + 0.91893853320467274178;  // log(2 pi) / 2
  const D shifted = stirling - log(select(small, product, splat(1.0)));
  const D near = (a - 1.0) * (a - 2.0) *
                 poly(a - 1.5, 0x1.eeb95b099e288p-2, -0x1.2aed05581fc64p-3, 0x1.01af614d36b66p-4, -0x1.007af94ff0418p-5,
                      0x1.13350ae34ce6dp-6, -0x1.34c04395d5663p-7, 0x1.64b5bd07db056p-8, -0x1.a8ff9b5728ae7p-9,
                      0x1.ff181b3a0facbp-10, -0x1.0e1759ea961d2p-10, 0x1.3f01d648a743dp-11, -0x1.7375ad3aab286p-11,
                      0x1.e0a995de84c9dp-12);
  return select(abs(a - 1.5) < 0.6, near, shifted) + 0.0;  // the zeros at 1 and 2 are positive
}
VFN D lgamma(D x) {
  const double inf = std::numeric_limits<double>::infinity();
  const D a = select(abs(x) < 0x1p128, abs(x), splat(1.0)), whole = nearest(x);
  D y = log_gamma_positive(select(a > 0.0, a, splat(1.0)));
  if (const L negative = x < 0.0; any(negative)) {
    const D t = abs(x - whole), sine = sin_of_pi(t, t * t);
    y = select(negative, log(3.14159265358979323846 / select(sine > 0.0, a * sine, splat(1.0))) - y, y);
  }
  y = select((abs(x) == inf) | ((x <= 0.0) & (x == whole)), splat(inf), y);
  return select(x != x, x, y);
}
VFN F lgamma(F x) { return joined(lgamma(low_half(x)), lgamma(high_half(x))); }

// log z less a series, after a step of 8 where x is small: the sum of 1 / (x + k) is p' / p of the product p.
VFN D digamma(D x) {
  const double inf = std::numeric_limits<double>::infinity();
  const D nan = splat(std::numeric_limits<double>::quiet_NaN());
  const L negative = x < 0.0;
  const D whole = nearest(x);
  const D given = select(negative, 1.0 - x, x), a = select((given > 0.0) & (given < inf), given, splat(1.0));
  const L small = a < 8.0;
  D product = a, slope = splat(1.0);
  for (int k = 1; k < 8; ++k) {
    const D factor = a + static_cast<double>(k);
    slope = fma(slope, factor, product);
    product = product * factor;
  }
  const D z = select(small, a + 8.0, a), inverse = 1.0 / z, square = inverse * inverse;
  const D series = square * poly(square, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760,
                                 1.0 / 12, -3617.0 / 8160);
  D y = log(z) - fma(splat(0.5), inverse, series) - select(small, slope / product, splat(0.0));
  if (any(negative)) {
    const D t = x - whole, cotangent = cos_of_pi(t * t) / sin_of_pi(t, t * t);
    y = select(negative, fma(cotangent, splat(-3.14159265358979323846), y), y);
  }
  y = select((x <= 0.0) & (x == whole), nan, y);
  y = select(x == inf, x, y);
  return select((x != x) | (x == -inf), nan, y);
}
VFN F digamma(F x) { return joined(digamma(low_half(x)), digamma(high_half(x))); }

RUNNEL_SPECIAL_FUNCTIONS(RUNNEL_ARRAY_FORM)
