#pragma once

// Internal to gemm.cpp: products that are too narrow for oneDNN's sgemm to fill its tiles. AVX2 only.
#include <cstdint>

namespace runnel::cpu {

inline constexpr int64_t kNarrow = 16;
inline constexpr int64_t kShortSum = 32;

// c[i * ldc + j] = sum_p op(A)[i, p] * b[p * ldb + j] for i < m, j < n <= kNarrow. op(A)[i, p] is a[i * lda + p], or
// with ta a[p * lda + i].
void gemm_narrow(bool ta, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                 float* c, int64_t ldc);

// The same for any n and op(A) = A, with few rows. With tb, op(B)[p, j] is b[j * ldb + p]. `packed` has room for
// skinny_scratch(n, k) floats.
void gemm_skinny(bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                 float* c, int64_t ldc, float* packed);
int64_t skinny_scratch(int64_t n, int64_t k);

}  // namespace runnel::cpu
