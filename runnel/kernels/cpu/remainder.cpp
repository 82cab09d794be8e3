#include "runnel/kernels/cpu/remainder.h"

#include <algorithm>
#include <limits>

#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kBlock = 256;

// Up to kBlock remainders, and whether some are not right. In double the quotient of two floats below 2^28 never rounds
// up to an integer, and its whole part times y is exact, and so is what that leaves of x.
template <bool floor>
RUNNEL_INLINE bool remainders(const float* x, const float* y, float* z, int64_t n) {
  constexpr double kMost = 0x1p28;
  int32_t wrong = 0;
  RUNNEL_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const double a = std::fabs(static_cast<double>(x[i])), b = std::fabs(static_cast<double>(y[i]));
    const double ratio = a / b;
    const bool good = (ratio < kMost) & (b < std::numeric_limits<double>::infinity());
    wrong |= good ? 0 : 1;
    const auto whole = static_cast<double>(static_cast<int32_t>(good ? ratio : 0.0));
    const float rest = std::copysign(static_cast<float>(a - whole * b), x[i]);
    const bool other_sign = (rest != 0) & ((rest < 0) != (y[i] < 0));
    z[i] = floor && other_sign ? rest + y[i] : rest;
  }
  return wrong != 0;
}
template <bool floor>
RUNNEL_FLATTEN bool remainders_base(const float* x, const float* y, float* z, int64_t n) {
  return remainders<floor>(x, y, z, n);
}
template <bool floor>
RUNNEL_AVX2 RUNNEL_FLATTEN bool remainders_avx2(const float* x, const float* y, float* z, int64_t n) {
  return remainders<floor>(x, y, z, n);
}

template <bool floor>
void run(const float* x, const float* y, float* z, int64_t n) {
  const auto kernel = has_avx2() ? &remainders_avx2<floor> : &remainders_base<floor>;
  float block[kBlock];  // z may be an operand, which is read again below
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t m = std::min(kBlock, n - at);
    if (kernel(x + at, y + at, block, m)) {
      for (int64_t i = 0; i < m; ++i) {
        const float a = x[at + i], b = y[at + i];
        if (std::fabs(static_cast<double>(a)) / std::fabs(static_cast<double>(b)) < 0x1p28 && std::isfinite(b))
          continue;
        block[i] = floor ? floor_mod(a, b) : truncate_mod(a, b);
      }
    }
    std::copy(block, block + m, z + at);
  }
}

}  // namespace

void vtruncate_mod(const float* x, const float* y, float* z, int64_t n) { run<false>(x, y, z, n); }
void vfloor_mod(const float* x, const float* y, float* z, int64_t n) { run<true>(x, y, z, n); }

}  // namespace runnel::cpu
