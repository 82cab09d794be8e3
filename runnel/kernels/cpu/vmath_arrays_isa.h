// The array forms of vmath.h for one instruction set (see foreach_isa.h).

#include "runnel/kernels/cpu/simd_double_isa.h"
#include "runnel/kernels/cpu/vmath_hyperbolic_isa.h"

VFN F rsqrt(F x) { return 1.0f / sqrt(x); }

VFN F xlogy(F x, F y) { return select(x == 0.0f, F{}, x * log(y)); }
VFN F xlog1py(F x, F y) { return select(x == 0.0f, F{}, x * log1p(y)); }

// For finite x other than 0 and finite y.
VFN D pow(D x, D y) {
  const D product = y * log(abs(x));
  const D power = exp(select(abs(product) < 600.0, product, select(product < 0.0, splat(-600.0), splat(600.0))));
  const L negative = x < 0.0;
  if (!any(negative)) return power;
  const D half = y * 0.5;
  const D signed_power = select(half == nearest(half), power, -power);
  const D of_negative = select(y == nearest(y), signed_power, splat(std::numeric_limits<double>::quiet_NaN()));
  return select(negative, of_negative, power);
}
VFN F pow(F x, F y) {
  const float inf = std::numeric_limits<float>::infinity();
  F z = joined(pow(low_half(x), low_half(y)), pow(high_half(x), high_half(y)));
  const I usual = (x != 0.0f) & (abs(x) < inf) & (abs(y) < inf);
  if (!__builtin_expect(all(usual), 1)) {
    for (int i = 0; i < W; ++i) z[i] = usual[i] ? z[i] : y[i] == 0 ? 1.f : std::pow(x[i], y[i]);
  }
  return z;
}

RUNNEL_VMATH_FUNCTIONS(RUNNEL_ARRAY_FORM)
RUNNEL_VMATH_FUNCTIONS_OF_TWO(RUNNEL_ARRAY_FORM_OF_TWO)
