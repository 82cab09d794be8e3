#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "runnel/base/export.h"

namespace runnel {

// Philox4x32-10: the counter-based generator of Random123, with TensorFlow's use of it. Call number i from a
// state depends on (key, counter + i) alone, so any part of a stream can be drawn by itself: copy, skip,
// draw.
class Philox {
 public:
  using Key = std::array<uint32_t, 2>;
  using Block = std::array<uint32_t, 4>;

  Philox() = default;
  Philox(const Block& counter, const Key& key) : counter_(counter), key_(key) {}
  // TensorFlow's seeding: the first seed is the key, the second the high half of the counter.
  explicit Philox(uint64_t seed, uint64_t seed2 = 0)
      : counter_{0, 0, low(seed2), high(seed2)}, key_{low(seed), high(seed)} {}

  const Block& counter() const { return counter_; }
  const Key& key() const { return key_; }

  // Passes over n calls of operator().
  void skip(uint64_t n) {
    const uint64_t before = join(counter_[0], counter_[1]);
    const uint64_t after = before + n;
    counter_[0] = low(after);
    counter_[1] = high(after);
    if (after < before && ++counter_[2] == 0) ++counter_[3];
  }

  Block operator()() {
    Block x = counter_;
    Key k = key_;
    for (int i = 0; i < kRounds; ++i) {
      const uint64_t p0 = uint64_t{kMultiplier0} * x[0];
      const uint64_t p1 = uint64_t{kMultiplier1} * x[2];
      x = {high(p1) ^ x[1] ^ k[0], low(p1), high(p0) ^ x[3] ^ k[1], low(p0)};
      k[0] += kWeyl0;
      k[1] += kWeyl1;
    }
    skip(1);
    return x;
  }

  friend bool operator==(const Philox&, const Philox&) = default;

  static constexpr int kRounds = 10;
  static constexpr uint32_t kMultiplier0 = 0xd2511f53, kMultiplier1 = 0xcd9e8d57;
  static constexpr uint32_t kWeyl0 = 0x9e3779b9, kWeyl1 = 0xbb67ae85;

 private:
  static uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
  static uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }
  static uint64_t join(uint32_t lo, uint32_t hi) { return uint64_t{hi} << 32 | lo; }

  Block counter_{};
  Key key_{};
};

// The same numbers as `blocks` calls of gen(), four words each, at SIMD speed where there is any.
RUNNEL_API void philox_fill(Philox& gen, uint32_t* out, int64_t blocks);

// One word at a time, for draws that take a number of words not known beforehand.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& gen) : gen_(gen) {}
  uint32_t operator()() {
    if (used_ == 4) {
      block_ = gen_();
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  Philox gen_;
  Philox::Block block_{};
  uint32_t used_ = 4;
};

// Words to numbers in [0, 1), bit for bit as TensorFlow: random mantissa under exponent 0, minus 1.
inline float uniform_float(uint32_t x) { return std::bit_cast<float>((x & 0x7fffffu) | 0x3f800000u) - 1.0f; }
inline double uniform_double(uint32_t x0, uint32_t x1) {
  return std::bit_cast<double>(uint64_t{x0 & 0xfffffu} << 32 | x1 | uint64_t{1023} << 52) - 1.0;
}
// The low 16 bits give the value; the float is exactly the float16 or bfloat16 that TensorFlow draws.
inline float uniform_half(uint32_t x) { return static_cast<float>(x & 0x3ffu) / 1024.0f; }
inline float uniform_bfloat16(uint32_t x) { return static_cast<float>(x & 0x7fu) / 128.0f; }

inline uint64_t uniform_bits64(uint32_t x0, uint32_t x1) { return uint64_t{x1} << 32 | x0; }
// In [lo, hi), lo < hi, by remainder.
inline int32_t uniform_int32(uint32_t x, int32_t lo, int32_t hi) {
  const uint32_t range = static_cast<uint32_t>(hi) - static_cast<uint32_t>(lo);
  return static_cast<int32_t>(static_cast<uint32_t>(lo) + x % range);
}
inline int64_t uniform_int64(uint32_t x0, uint32_t x1, int64_t lo, int64_t hi) {
  const uint64_t range = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
  return static_cast<int64_t>(static_cast<uint64_t>(lo) + uniform_bits64(x0, x1) % range);
}

inline constexpr double kTwoPi = 6.283185307179586476925286766559;

// Two standard normals from two uniforms; the sine first. TensorFlow keeps the uniform under the logarithm at
// or above 1e-7 in both precisions.
inline std::array<float, 2> box_muller(uint32_t x0, uint32_t x1) {
  const float u = uniform_float(x0);
  const float angle = static_cast<float>(kTwoPi * uniform_float(x1));
  const float radius = std::sqrt(-2.0f * std::log(u < 1.0e-7f ? 1.0e-7f : u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}
inline std::array<double, 2> box_muller_double(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3) {
  const double u = uniform_double(x0, x1);
  const double angle = kTwoPi * uniform_double(x2, x3);
  const double radius = std::sqrt(-2.0 * std::log(u < 1.0e-7 ? 1.0e-7 : u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

}  // namespace runnel
