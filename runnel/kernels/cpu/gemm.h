#pragma once

#include <cstdint>

#include "runnel/base/export.h"
#include "runnel/kernels/cpu/epilogue.h"

namespace runnel::cpu {

// Row-major C[m,n] = alpha * op(A) * op(B) + beta * C, then the epilogue. op(A) is [m,k]: A itself with rows lda apart,
// or, with ta, the transpose of A[k,m]; B likewise. beta == 0 never reads C. Runs on the compute pool.
// Every element is summed over k in an order that depends on m, n and k alone.
RUNNEL_API void gemm_f32(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                         const float* b, int64_t ldb, float beta, float* c, int64_t ldc, const Epilogue& epilogue = {});

// Is C[m,n] = A * B faster with a packed copy of B[k,n], so much that one pays that is used again and again? (m is 1
// then.) gemm_pack makes it, of gemm_packed_size(n, k) floats on a 64-byte boundary. The bits are the same.
RUNNEL_API bool gemm_packs(int64_t m, int64_t n, int64_t k);
RUNNEL_API int64_t gemm_packed_size(int64_t n, int64_t k);
RUNNEL_API void gemm_pack(int64_t n, int64_t k, const float* b, float* packed);
RUNNEL_API void gemm_packed_f32(int64_t n, int64_t k, const float* a, const float* packed, float* c,
                                const Epilogue& epilogue = {});

// batch independent products; matrix i starts at a + i * stride_a and so on (a stride of 0 repeats one matrix).
RUNNEL_API void gemm_batched_f32(int64_t batch, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                                 const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                                 int64_t stride_b, float beta, float* c, int64_t ldc, int64_t stride_c);

// The same for the other types: double, int16_t, int32_t, int64_t, std::complex<float>, std::complex<double> (and
// float, the fallback of machines without AVX2). Integers wrap around. conj_a, conj_b conjugate the operand (complex
// only).
template <class T>
RUNNEL_API void gemm_plain(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                           const T* b, int64_t ldb, T beta, T* c, int64_t ldc, bool conj_a = false,
                           bool conj_b = false);
template <class T>
RUNNEL_API void gemm_batched_plain(int64_t batch, bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha,
                                   const T* a, int64_t lda, int64_t stride_a, const T* b, int64_t ldb, int64_t stride_b,
                                   T beta, T* c, int64_t ldc, int64_t stride_c, bool conj_a = false,
                                   bool conj_b = false);

}  // namespace runnel::cpu
