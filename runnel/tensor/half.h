#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace runnel {

namespace half_detail {

// The conversions are selects over straight-line code, so that loops over them vectorise; the subnormal
// path works on normal floats only, so that flush-to-zero modes cannot change it.

constexpr float float16_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
  const uint32_t exponent = magnitude & 0x0f800000u;
  const uint32_t normal = magnitude + (112u << 23);
  const uint32_t special = magnitude + (224u << 23);
  // 2^-14 + mantissa * 2^-24, less 2^-14: exact.
  const float lifted = std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23);
  const uint32_t subnormal = std::bit_cast<uint32_t>(lifted);
  const uint32_t bits = exponent == 0x0f800000u ? special : (exponent == 0 ? subnormal : normal);
  return std::bit_cast<float>(sign | bits);
}

constexpr uint16_t float_to_float16(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (all >> 16) & 0x8000u;
  const uint32_t bits = all & 0x7fffffffu;
  const uint32_t nan = 0x7e00u | ((bits >> 13) & 0x1ffu);
  // The carry of the rounding runs into the exponent: 65520 and above become infinity by themselves,
  // up to the largest exponent a half can hold.
  const uint32_t normal = (bits - (112u << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  // One unit in the last place of 0.5f is 2^-24, the step of the half subnormals: the addition rounds.
  const float small = bits < (113u << 23) ? std::bit_cast<float>(bits) : 0.0f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(small + 0.5f) - (126u << 23);
  uint32_t result = bits < (113u << 23) ? subnormal : normal;
  result = bits >= (143u << 23) ? 0x7c00u : result;
  result = bits > (255u << 23) ? nan : result;
  return static_cast<uint16_t>(sign | result);
}

constexpr float bfloat16_to_float(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

constexpr uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > (255u << 23) ? nan : rounded);
}

}  // namespace half_detail

// IEEE binary16 (the names float16 and bfloat16 are the dtypes). A storage type: it converts to float by
// itself and from float only when asked, rounding to nearest even, so that an expression mixing it with
// numbers is computed in float and rounded once.
class Half {
 public:
  Half() = default;
  constexpr explicit Half(float value) : bits_(half_detail::float_to_float16(value)) {}
  constexpr operator float() const { return half_detail::float16_to_float(bits_); }  // NOLINT: implicit

  static constexpr Half from_bits(uint16_t bits) {
    Half result(0.0f);
    result.bits_ = bits;
    return result;
  }
  constexpr uint16_t bits() const { return bits_; }

 private:
  uint16_t bits_;
};

// The upper half of a float. Converts as Half does.
class BFloat16 {
 public:
  BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits_(half_detail::float_to_bfloat16(value)) {}
  constexpr operator float() const { return half_detail::bfloat16_to_float(bits_); }  // NOLINT: implicit

  static constexpr BFloat16 from_bits(uint16_t bits) {
    BFloat16 result(0.0f);
    result.bits_ = bits;
    return result;
  }
  constexpr uint16_t bits() const { return bits_; }

 private:
  uint16_t bits_;
};

template <class T>
concept HalfFloat = std::same_as<T, Half> || std::same_as<T, BFloat16>;

// Comparisons are float's, through the conversion.
template <HalfFloat H>
constexpr H operator+(H a, H b) {
  return H(static_cast<float>(a) + static_cast<float>(b));
}
template <HalfFloat H>
constexpr H operator-(H a, H b) {
  return H(static_cast<float>(a) - static_cast<float>(b));
}
template <HalfFloat H>
constexpr H operator*(H a, H b) {
  return H(static_cast<float>(a) * static_cast<float>(b));
}
template <HalfFloat H>
constexpr H operator/(H a, H b) {
  return H(static_cast<float>(a) / static_cast<float>(b));
}
template <HalfFloat H>
constexpr H operator+(H a) {
  return a;
}
template <HalfFloat H>
constexpr H operator-(H a) {
  return H::from_bits(static_cast<uint16_t>(a.bits() ^ 0x8000u));
}
template <HalfFloat H>
constexpr H& operator+=(H& a, float b) {
  return a = H(static_cast<float>(a) + b);
}
template <HalfFloat H>
constexpr H& operator-=(H& a, float b) {
  return a = H(static_cast<float>(a) - b);
}
template <HalfFloat H>
constexpr H& operator*=(H& a, float b) {
  return a = H(static_cast<float>(a) * b);
}
template <HalfFloat H>
constexpr H& operator/=(H& a, float b) {
  return a = H(static_cast<float>(a) / b);
}

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

namespace half_detail {

template <HalfFloat H>
struct Limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool is_iec559 = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int radix = 2;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr H denorm_min() noexcept { return H::from_bits(1); }
  static constexpr H round_error() noexcept { return H(0.5f); }
};

}  // namespace half_detail
}  // namespace runnel

template <>
struct std::numeric_limits<runnel::Half> : runnel::half_detail::Limits<runnel::Half> {
  static constexpr int digits = 11;
  static constexpr int digits10 = 3;
  static constexpr int max_digits10 = 5;
  static constexpr int min_exponent = -13;
  static constexpr int min_exponent10 = -4;
  static constexpr int max_exponent = 16;
  static constexpr int max_exponent10 = 4;
  static constexpr runnel::Half min() noexcept { return runnel::Half::from_bits(0x0400); }
  static constexpr runnel::Half max() noexcept { return runnel::Half::from_bits(0x7bff); }
  static constexpr runnel::Half lowest() noexcept { return runnel::Half::from_bits(0xfbff); }
  static constexpr runnel::Half epsilon() noexcept { return runnel::Half::from_bits(0x1400); }
  static constexpr runnel::Half infinity() noexcept { return runnel::Half::from_bits(0x7c00); }
  static constexpr runnel::Half quiet_NaN() noexcept { return runnel::Half::from_bits(0x7e00); }
  static constexpr runnel::Half signaling_NaN() noexcept { return runnel::Half::from_bits(0x7d00); }
};

template <>
struct std::numeric_limits<runnel::BFloat16> : runnel::half_detail::Limits<runnel::BFloat16> {
  static constexpr int digits = 8;
  static constexpr int digits10 = 2;
  static constexpr int max_digits10 = 4;
  static constexpr int min_exponent = -125;
  static constexpr int min_exponent10 = -37;
  static constexpr int max_exponent = 128;
  static constexpr int max_exponent10 = 38;
  static constexpr runnel::BFloat16 min() noexcept { return runnel::BFloat16::from_bits(0x0080); }
  static constexpr runnel::BFloat16 max() noexcept { return runnel::BFloat16::from_bits(0x7f7f); }
  static constexpr runnel::BFloat16 lowest() noexcept { return runnel::BFloat16::from_bits(0xff7f); }
  static constexpr runnel::BFloat16 epsilon() noexcept { return runnel::BFloat16::from_bits(0x3c00); }
  static constexpr runnel::BFloat16 infinity() noexcept { return runnel::BFloat16::from_bits(0x7f80); }
  static constexpr runnel::BFloat16 quiet_NaN() noexcept { return runnel::BFloat16::from_bits(0x7fc0); }
  static constexpr runnel::BFloat16 signaling_NaN() noexcept { return runnel::BFloat16::from_bits(0x7fa0); }
};

// Equal values hash equally, so the two zeros do.
template <runnel::HalfFloat H>
struct std::hash<H> {
  std::size_t operator()(H value) const noexcept { return std::hash<float>()(static_cast<float>(value)); }
};
