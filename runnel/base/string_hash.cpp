#include "runnel/base/string_hash.h"

#include <bit>
#include <cstring>
#include <utility>

namespace runnel {
namespace {

using std::rotl;
using std::rotr;

uint64_t load64(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
uint32_t load32(const char* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// FarmHash's 64-bit fingerprint: one formula for each range of lengths.
namespace farm {

constexpr uint64_t kA = 0xc3a5c85c97cb3127u;
constexpr uint64_t kB = 0xb492b66fbe98f273u;
constexpr uint64_t kC = 0x9ae16a3b2f90404fu;

uint64_t mix(uint64_t v) { return v ^ (v >> 47); }

uint64_t combine(uint64_t u, uint64_t v, uint64_t mul) { return mix((v ^ mix((u ^ v) * mul)) * mul) * mul; }

uint64_t up_to_16(const char* s, uint64_t n) {
  const uint64_t mul = kC + n * 2;
  if (n >= 8) {
    const uint64_t a = load64(s) + kC;
    const uint64_t b = load64(s + n - 8);
    return combine(rotr(b, 37) * mul + a, (rotr(a, 25) + b) * mul, mul);
  }
  if (n >= 4) return combine(n + (uint64_t{load32(s)} << 3), load32(s + n - 4), mul);
  if (n == 0) return kC;
  const auto byte = [&](uint64_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(s[i])); };
  const uint32_t y = byte(0) + (byte(n >> 1) << 8);
  const uint32_t z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
  return mix(y * kC ^ z * kA) * kC;
}

uint64_t up_to_32(const char* s, uint64_t n) {
  const uint64_t mul = kC + n * 2;
  const uint64_t a = load64(s) * kB;
  const uint64_t b = load64(s + 8);
  const uint64_t c = load64(s + n - 8) * mul;
  const uint64_t d = load64(s + n - 16) * kC;
  return combine(rotr(a + b, 43) + rotr(c, 30) + d, a + rotr(b + kC, 18) + c, mul);
}

uint64_t up_to_64(const char* s, uint64_t n) {
  const uint64_t mul = kC + n * 2;
  const uint64_t a = load64(s) * kC;
  const uint64_t b = load64(s + 8);
  const uint64_t c = load64(s + n - 8) * mul;
  const uint64_t d = load64(s + n - 16) * kC;
  const uint64_t y = rotr(a + b, 43) + rotr(c, 30) + d;
  const uint64_t z = combine(y, a + rotr(b + kC, 18) + c, mul);
  const uint64_t e = load64(s + 16) * mul;
  const uint64_t f = load64(s + 24);
  const uint64_t g = (y + load64(s + n - 32)) * mul;
  const uint64_t h = (z + load64(s + n - 24)) * mul;
  return combine(rotr(e + f, 43) + rotr(g, 30) + h, e + rotr(f + a, 18) + g, mul);
}

struct Pair {
  uint64_t first, second;
};

Pair weak(const char* s, uint64_t a, uint64_t b) {
  const uint64_t first = a + load64(s);
  const uint64_t last = load64(s + 24);
  const uint64_t sum = first + load64(s + 8) + load64(s + 16);
  return {sum + last, rotr(b + first + last, 21) + rotr(sum, 44) + first};
}

// What is known after some blocks of 64 bytes.
struct State {
  uint64_t x, y, z;
  Pair v{0, 0}, w{0, 0};

  void block(const char* s, uint64_t mul, uint64_t factor) {
    x = rotr(x + y + v.first + load64(s + 8), 37) * mul;
    y = rotr(y + v.second + load64(s + 48), 42) * mul;
    x ^= w.second * factor;
    y += v.first * factor + load64(s + 40);
    z = rotr(z + w.first, 33) * mul;
    v = weak(s, v.second * mul, x + w.first);
    w = weak(s + 32, z + w.second, y + load64(s + 16));
    std::swap(z, x);
  }
};

uint64_t longer(const char* s, uint64_t n) {
  constexpr uint64_t seed = 81;
  State t{seed * kC + load64(s), seed * kB + 113, 0};
  t.z = mix(t.y * kC + 113) * kC;
  const uint64_t rest = (n - 1) & 63;
  const char* end = s + (n - 1) / 64 * 64;
  const char* last = end + rest - 63;
  for (; s != end; s += 64) t.block(s, kB, 1);
  const uint64_t mul = kB + ((t.z & 0xff) << 1);
  t.w.first += rest;
  t.v.first += t.w.first;
  t.w.first += t.v.first;
  t.block(last, mul, 9);
  return combine(combine(t.v.first, t.w.first, mul) + mix(t.y) * kA + t.z, combine(t.v.second, t.w.second, mul) + t.x,
                 mul);
}

}  // namespace farm
}  // namespace

uint64_t farm_fingerprint64(std::string_view text) {
  const uint64_t n = text.size();
  if (n <= 16) return farm::up_to_16(text.data(), n);
  if (n <= 32) return farm::up_to_32(text.data(), n);
  if (n <= 64) return farm::up_to_64(text.data(), n);
  return farm::longer(text.data(), n);
}

uint64_t murmur64(std::string_view text, uint64_t seed) {
  constexpr uint64_t m = 0xc6a4a7935bd1e995u;
  const char* s = text.data();
  uint64_t n = text.size();
  uint64_t h = seed ^ (n * m);
  for (; n >= 8; n -= 8, s += 8) {
    uint64_t k = load64(s) * m;
    k ^= k >> 47;
    h = (h ^ k * m) * m;
  }
  if (n > 0) {
    uint64_t tail = 0;
    std::memcpy(&tail, s, n);
    h = (h ^ tail) * m;
  }
  h = (h ^ h >> 47) * m;
  return h ^ h >> 47;
}

uint64_t sip_hash24(std::string_view text, uint64_t key0, uint64_t key1) {
  uint64_t a = key0 ^ 0x736f6d6570736575u;
  uint64_t b = key1 ^ 0x646f72616e646f6du;
  uint64_t c = key0 ^ 0x6c7967656e657261u;
  uint64_t d = key1 ^ 0x7465646279746573u;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      a += b, b = rotl(b, 13) ^ a, a = rotl(a, 32);
      c += d, d = rotl(d, 16) ^ c;
      a += d, d = rotl(d, 21) ^ a;
      c += b, b = rotl(b, 17) ^ c, c = rotl(c, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    d ^= word;
    rounds(2);
    a ^= word;
  };
  const char* s = text.data();
  uint64_t n = text.size();
  for (; n >= 8; n -= 8, s += 8) take(load64(s));
  uint64_t last = uint64_t{text.size()} << 56;
  for (uint64_t i = 0; i < n; ++i) last |= uint64_t{static_cast<unsigned char>(s[i])} << (8 * i);
  take(last);
  c ^= 0xff;
  rounds(4);
  return a ^ b ^ c ^ d;
}

}  // namespace runnel
