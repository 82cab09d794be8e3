#include "runnel/base/crc32c.h"

#include <algorithm>
#include <array>

#include "runnel/base/cpu.h"
#include "runnel/base/varint.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace runnel {
namespace {

// Everything is bit-reflected: bit 31 of a word is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78;

using Table = std::array<uint32_t, 256>;

// kTables[k][b]: the register after byte b and k zero bytes, so that eight bytes are looked up at once.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t r = b;
    for (int i = 0; i < 8; ++i) r = (r >> 1) ^ (r & 1 ? kPolynomial : 0);
    t[0][b] = r;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 0xff];
  }
  return t;
}
constexpr std::array<Table, 8> kTables = make_tables();

uint32_t update_portable(uint32_t r, const unsigned char* p, size_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    const uint64_t w = load_fixed64(p) ^ r;
    r = 0;
    for (size_t k = 0; k < 8; ++k) r ^= kTables[7 - k][(w >> (8 * k)) & 0xff];
  }
  for (; n > 0; --n) r = (r >> 8) ^ kTables[0][(r ^ *p++) & 0xff];
  return r;
}

constexpr uint32_t multiply(uint32_t a, uint32_t b) {  // modulo the polynomial
  uint32_t product = 0;
  for (int i = 0; i < 32; ++i) {
    if (b & 0x80000000u) product ^= a;
    b <<= 1;
    a = (a >> 1) ^ (a & 1 ? kPolynomial : 0);
  }
  return product;
}

constexpr uint32_t x_to_the(uint64_t n) {
  uint32_t result = 0x80000000u, square = 0x40000000u;
  for (; n > 0; n >>= 1) {
    if (n & 1) result = multiply(result, square);
    square = multiply(square, square);
  }
  return result;
}

#if defined(__x86_64__)

// Advances a register over Bytes zero bytes: a multiplication by x^(8 Bytes), one table per byte of the
// register.
template <size_t Bytes>
struct Skip {
  static constexpr std::array<Table, 4> make() {
    std::array<Table, 4> t{};
    const uint32_t factor = x_to_the(8 * Bytes);
    for (size_t k = 0; k < 4; ++k) {
      for (uint32_t b = 1; b < 256; ++b) {
        const uint32_t low = b & (0 - b);
        t[k][b] = b == low ? multiply(factor, b << (8 * k)) : t[k][b ^ low] ^ t[k][low];
      }
    }
    return t;
  }
  static constexpr std::array<Table, 4> tables = make();

  static uint32_t apply(uint32_t r) {
    return tables[0][r & 0xff] ^ tables[1][(r >> 8) & 0xff] ^ tables[2][(r >> 16) & 0xff] ^ tables[3][r >> 24];
  }
};

// The instruction has a latency of three cycles and starts one each cycle: three streams keep it busy.
template <size_t Bytes>
__attribute__((target("sse4.2"))) void update_blocks(uint64_t& r, const unsigned char*& p, size_t& n) {
  while (n >= 3 * Bytes) {
    uint64_t a = r, b = 0, c = 0;
    for (size_t i = 0; i < Bytes; i += 8) {
      a = _mm_crc32_u64(a, load_fixed64(p + i));
      b = _mm_crc32_u64(b, load_fixed64(p + i + Bytes));
      c = _mm_crc32_u64(c, load_fixed64(p + i + 2 * Bytes));
    }
    b ^= Skip<Bytes>::apply(static_cast<uint32_t>(a));
    r = c ^ Skip<Bytes>::apply(static_cast<uint32_t>(b));
    p += 3 * Bytes;
    n -= 3 * Bytes;
  }
}

// kShift[w]: x^(64 w - 33). The carry-less product of a register and kShift[w], taken as eight bytes of data, has as
// its checksum the register advanced over w words of zeros (product and instruction contribute the other x^33).
constexpr size_t max_words = 128;
constexpr std::array<uint32_t, 2 * max_words + 1> make_shifts() {
  std::array<uint32_t, 2 * max_words + 1> t{};
  t[1] = x_to_the(31);
  for (size_t w = 2; w < t.size(); ++w) t[w] = multiply(t[w - 1], x_to_the(64));
  return t;
}
constexpr auto kShift = make_shifts();

// Three streams again, each a third of what there is: for records, which are short.
__attribute__((target("sse4.2,pclmul"))) void update_thirds(uint64_t& r, const unsigned char*& p, size_t& n) {
  while (n >= 48) {
    const size_t words = std::min(n / 24, max_words), bytes = 8 * words;
    uint64_t a = r, b = 0, c = 0;
    for (size_t i = 0; i < bytes; i += 8) {
      a = _mm_crc32_u64(a, load_fixed64(p + i));
      b = _mm_crc32_u64(b, load_fixed64(p + i + bytes));
      c = _mm_crc32_u64(c, load_fixed64(p + i + 2 * bytes));
    }
    const auto product = [](uint64_t value, uint32_t factor) __attribute__((target("sse4.2,pclmul"))) {
      return _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(value)),
                                  _mm_cvtsi32_si128(static_cast<int>(factor)), 0);
    };
    const __m128i sum = _mm_xor_si128(product(a, kShift[2 * words]), product(b, kShift[words]));
    r = c ^ _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(sum)));
    p += 3 * bytes;
    n -= 3 * bytes;
  }
}

// Long data: sixteen streams of 16 bytes. Multiplying the sum so far of one by x^(8 * distance) carries it over to
// bytes that far behind; what is left in the end has the checksum of all. A product of two reflected 64-bit words is
// one x short of a reflected 128-bit one, hence the exponents.
constexpr size_t kWide = 256;
constexpr int64_t fold_word(uint64_t exponent) { return static_cast<int64_t>(uint64_t{x_to_the(exponent)} << 32); }
#define RUNNEL_WIDE_CRC __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2"), always_inline)) inline
template <size_t Distance>
RUNNEL_WIDE_CRC __m512i fold(__m512i sums, __m512i into) {
  constexpr int64_t first = fold_word(8 * Distance + 63), second = fold_word(8 * Distance - 1);
  const __m512i factor = _mm512_set_epi64(second, first, second, first, second, first, second, first);
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sums, factor, 0x00),
                                   _mm512_clmulepi64_epi128(sums, factor, 0x11), into, 0x96);  // of all three: xor
}
#undef RUNNEL_WIDE_CRC

__attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2"))) void update_wide(uint64_t& r,
                                                                                      const unsigned char*& p,
                                                                                      size_t& n) {
  __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
  __m512i c = _mm512_loadu_si512(p + 128), d = _mm512_loadu_si512(p + 192);
  a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi64_si128(static_cast<int64_t>(r))));
  for (p += kWide, n -= kWide; n >= kWide; p += kWide, n -= kWide) {
    a = fold<kWide>(a, _mm512_loadu_si512(p));
    b = fold<kWide>(b, _mm512_loadu_si512(p + 64));
    c = fold<kWide>(c, _mm512_loadu_si512(p + 128));
    d = fold<kWide>(d, _mm512_loadu_si512(p + 192));
  }
  d = fold<192>(a, fold<128>(b, fold<64>(c, d)));
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, d);
  r = 0;
  for (const uint64_t word : words) r = _mm_crc32_u64(r, word);
}

bool has_wide() {
  static const bool has = has_avx512() && __builtin_cpu_supports("vpclmulqdq") != 0;
  return has;
}

__attribute__((target("sse4.2,pclmul"))) uint32_t update_sse42(uint32_t r32, const unsigned char* p, size_t n) {
  uint64_t r = r32;
  if (n >= 4 * kWide && has_wide()) update_wide(r, p, n);
  update_blocks<4096>(r, p, n);
  update_thirds(r, p, n);
  for (; n >= 8; p += 8, n -= 8) r = _mm_crc32_u64(r, load_fixed64(p));
  auto rest = static_cast<uint32_t>(r);
  if ((n & 4) != 0) {
    rest = _mm_crc32_u32(rest, load_fixed32(p));
    p += 4;
  }
  for (n &= 3; n > 0; --n) rest = _mm_crc32_u8(rest, *p++);
  return rest;
}

#endif

}  // namespace

uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t size_of_b) { return multiply(x_to_the(8 * size_of_b), a) ^ b; }

uint32_t crc32c_extend_portable(uint32_t crc, const void* data, size_t size) {
  return ~update_portable(~crc, static_cast<const unsigned char*>(data), size);
}

uint32_t crc32c_extend(uint32_t crc, const void* data, size_t size) {
#if defined(__x86_64__)
  if (has_sse42()) return ~update_sse42(~crc, static_cast<const unsigned char*>(data), size);
#endif
  return crc32c_extend_portable(crc, data, size);
}

}  // namespace runnel
