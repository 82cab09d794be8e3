#pragma once

// Conversion between element types as TensorFlow's Cast: what C does, with the cases C leaves open settled. Floating
// values lose their fraction; those that do not fit an int32, uint32 or int64 (and NaN) become the smallest value
// of the signed type, and reach the smaller types from int32 by wrapping around. bool is "not zero"; complex numbers
// lose their imaginary part.

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runnel/kernels/cpu/loops.h"

namespace runnel::cpu {

template <class Int, class Float>
RUNNEL_INLINE Int truncate_to(Float x) {
  constexpr Float limit = static_cast<Float>(uint64_t{1} << (sizeof(Int) * 8 - 1));  // exact: a power of two
  return x >= -limit && x < limit ? static_cast<Int>(x) : std::numeric_limits<Int>::min();
}

template <class To>
struct CastTo {
  template <class From>
  RUNNEL_INLINE To operator()(From x) const {
    if constexpr (requires { typename From::value_type; }) {
      if constexpr (requires { typename To::value_type; }) {
        using V = typename To::value_type;
        return To(static_cast<V>(x.real()), static_cast<V>(x.imag()));
      } else {
        return (*this)(x.real());
      }
    } else if constexpr (requires { typename To::value_type; }) {
      return To(CastTo<typename To::value_type>{}(x));
    } else if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      if constexpr (std::is_same_v<To, uint64_t>) {
        constexpr From half = 0x1p63;
        return x < half ? static_cast<uint64_t>(truncate_to<int64_t>(x))
                        : static_cast<uint64_t>(truncate_to<int64_t>(x - half)) ^ (uint64_t{1} << 63);
      } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t>) {
        return static_cast<To>(truncate_to<int64_t>(x));
      } else {
        return static_cast<To>(truncate_to<int32_t>(x));
      }
    } else {
      return static_cast<To>(x);
    }
  }
};

// y[i] = x[i] as a To; To and From are any element types but strings and handles.
template <class From, class To>
void cast_loop(const From* x, To* y, int64_t n) {
  if constexpr (std::is_same_v<From, uint8_t> && std::is_same_v<To, float>) {  // pixels: worth a clone of their own
    if (has_avx2()) {
      constexpr NoAttrs none;
      const UnaryKernel kernel = &detail::unary_avx2<CastTo<float>, uint8_t, float, NoAttrs>;
      if (n <= kGrain) return kernel(x, y, n, &none);
      return run_unary(kernel, x, sizeof(From), y, sizeof(To), n, &none);
    }
  }
  unary_loop<CastTo<compute_t<To>>, From, To>(x, y, n);
}

}  // namespace runnel::cpu
