#pragma once

#include <cstdint>

#include "runnel/base/export.h"
#include "runnel/tensor/half.h"

namespace runnel::cpu {

// Does this CPU multiply bfloat16 itself? Elsewhere products of bfloat16 are faster as those of float32.
RUNNEL_API bool multiplies_bf16();

// batch independent products C = op(A) * op(B) of bfloat16 as in gemm_batched_f32 (alpha 1, beta 0), summed in float32
// and rounded once; only where multiplies_bf16(). Every element is summed in an order that depends on the shape alone.
RUNNEL_API void gemm_batched_bf16(int64_t batch, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const BFloat16* a,
                                  int64_t lda, int64_t stride_a, const BFloat16* b, int64_t ldb, int64_t stride_b,
                                  BFloat16* c, int64_t ldc, int64_t stride_c);

}  // namespace runnel::cpu
