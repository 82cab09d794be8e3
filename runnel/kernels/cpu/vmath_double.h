#pragma once

// Elementary functions of one double in plain arithmetic, without branches and calls: loops over them become vectors.
// Within 1 unit in the last place (tested), right for NaN, infinities, zeros and denormals.

#include <bit>
#include <cstdint>
#include <limits>

namespace runnel::cpu {

namespace detail {

// 2^k; k may be negative, as modulo 2^64.
inline double power_of_two(uint64_t k) { return std::bit_cast<double>((k + 1023) << 52); }

// Horner's rule, the constant first. Written out: a loop over coefficients would hide the loop over elements.
constexpr double polynomial(double, double c) { return c; }
template <class... C>
constexpr double polynomial(double x, double c, C... rest) {
  return polynomial(x, rest...) * x + c;
}

}  // namespace detail

inline double exp_of_double(double x) {
  constexpr double kMagic = 0x1.8p52;  // adding it leaves the nearest integer in the low digits
  const double limited = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  const double shifted = limited * 0x1.71547652b82fep0 + kMagic, n = shifted - kMagic;
  // x = n ln2 + r; n times the leading part of ln2 is exact.
  const double r = (limited - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  const double tail =
      detail::polynomial(r, 0x1.000000000000ap-1, 0x1.55555555554fap-3, 0x1.555555555087cp-5, 0x1.1111111127be8p-7,
                         0x1.6c16c1842a194p-10, 0x1.a01a012a5722fp-13, 0x1.a0199a0c53b63p-16, 0x1.71df25532c7ebp-19,
                         0x1.28ad72ddbb9c8p-22, 0x1.ad7f6dde40231p-26);
  const double y = 1 + (r + r * r * tail);
  // In two steps, for 2^n itself may be infinite, or denormal. Shifts without a sign, which vectors have.
  const uint64_t k = std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(kMagic);
  const uint64_t half = ((k + 2048) >> 1) - 1024;
  return y * detail::power_of_two(half) * detail::power_of_two(k - half);
}

inline double log_of_double(double x) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const bool denormal = x < std::numeric_limits<double>::min();
  const auto bits = std::bit_cast<uint64_t>(denormal ? x * 0x1p54 : x);
  // x = m 2^k with sqrt(1/2) <= m < sqrt(2).
  const uint64_t scaled = (bits - 0x3fe6a09e667f3bcd) & 0xfff0000000000000;
  const auto m = std::bit_cast<double>(bits - scaled);
  // The exponent, made positive, as the low digits of 2^52.
  const uint64_t exponent = (scaled + (uint64_t{1023} << 52)) >> 52;
  const double k = std::bit_cast<double>(exponent | 0x4330000000000000) - (0x1p52 + 1023) - (denormal ? 54.0 : 0.0);
  const double f = m - 1, s = f / (2 + f), z = s * s;
  const double tail =
      detail::polynomial(z, 0x1.5555555555593p-1, 0x1.999999997fca1p-2, 0x1.2492494201c4dp-2, 0x1.c71c51faec61ap-3,
                         0x1.7466420d4bea9p-3, 0x1.39a1651e5ba02p-3, 0x1.2f08ed4ddcd03p-3);
  // log(1 + f) = f - s (f - z P(z)), and k ln2, of whose leading part k times is exact.
  const double less = s * (f - z * tail) - k * 0x1.a39ef35793c76p-33;
  double y = k * 0x1.62e42fee00000p-1 - (less - f);
  y = x == kInf ? x : y;
  y = x == 0 ? -kInf : y;
  return x >= 0 ? y : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace runnel::cpu
