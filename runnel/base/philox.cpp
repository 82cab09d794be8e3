#include "runnel/base/philox.h"

#include <cstring>

#include "runnel/base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace runnel {
namespace {

void fill_portable(Philox& gen, uint32_t* out, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i) {
    const Philox::Block block = gen();
    std::memcpy(out + 4 * i, block.data(), sizeof(block));
  }
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) inline __m256i all(uint32_t v) { return _mm256_set1_epi32(static_cast<int>(v)); }

struct HighLow {
  __m256i high, low;
};

__attribute__((target("avx2"))) inline HighLow multiply(__m256i x, __m256i m) {
  const __m256i even = _mm256_mul_epu32(x, m);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
  return {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa),
          _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa)};
}

// Eight blocks at once, a lane each. The low counter word must not wrap among them.
__attribute__((target("avx2"))) void eight_blocks(const Philox& gen, uint32_t* out) {
  __m256i x0 = _mm256_add_epi32(all(gen.counter()[0]), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i x1 = all(gen.counter()[1]), x2 = all(gen.counter()[2]), x3 = all(gen.counter()[3]);
  const __m256i m0 = all(Philox::kMultiplier0), m1 = all(Philox::kMultiplier1);
  uint32_t k0 = gen.key()[0], k1 = gen.key()[1];
  for (int i = 0; i < Philox::kRounds; ++i) {
    const HighLow p0 = multiply(x0, m0), p1 = multiply(x2, m1);
    x0 = _mm256_xor_si256(_mm256_xor_si256(p1.high, x1), all(k0));
    x2 = _mm256_xor_si256(_mm256_xor_si256(p0.high, x3), all(k1));
    x1 = p1.low;
    x3 = p0.low;
    k0 += Philox::kWeyl0;
    k1 += Philox::kWeyl1;
  }
  // Lanes to rows: block b is word b of x0, x1, x2, x3.
  const __m256i a = _mm256_unpacklo_epi32(x0, x1), b = _mm256_unpackhi_epi32(x0, x1);
  const __m256i c = _mm256_unpacklo_epi32(x2, x3), d = _mm256_unpackhi_epi32(x2, x3);
  const __m256i b04 = _mm256_unpacklo_epi64(a, c), b15 = _mm256_unpackhi_epi64(a, c);
  const __m256i b26 = _mm256_unpacklo_epi64(b, d), b37 = _mm256_unpackhi_epi64(b, d);
  __m256i* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(b04, b15, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(b26, b37, 0x20));
  _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(b04, b15, 0x31));
  _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(b26, b37, 0x31));
}

void fill_avx2(Philox& gen, uint32_t* out, int64_t blocks) {
  for (; blocks >= 8; blocks -= 8, out += 32) {
    if (gen.counter()[0] > UINT32_MAX - 7) {
      fill_portable(gen, out, 8);
    } else {
      eight_blocks(gen, out);
      gen.skip(8);
    }
  }
  fill_portable(gen, out, blocks);
}

#endif

}  // namespace

void philox_fill(Philox& gen, uint32_t* out, int64_t blocks) {
#if defined(__x86_64__)
  if (has_avx2()) return fill_avx2(gen, out, blocks);
#endif
  fill_portable(gen, out, blocks);
}

}  // namespace runnel
