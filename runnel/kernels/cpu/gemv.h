#pragma once

// Internal to gemm.cpp: products with a vector, bound by the speed of reading the matrix.
#include <cstdint>

namespace runnel::cpu {

// y[j] = sum_p x[p * incx] * b[p * ldb + j], j < n
void gemv_rows(int64_t n, int64_t k, const float* x, int64_t incx, const float* b, int64_t ldb, float* y);
// Is there a faster way for rows of n floats that start on 64-byte boundaries (of the same bits)?
bool gemv_rows_aligned(int64_t n);
// y[j] = sum_p x[p] * b[j * ldb + p], j < n
void gemv_dots(int64_t n, int64_t k, const float* x, const float* b, int64_t ldb, float* y);

}  // namespace runnel::cpu
