#pragma once

// Internal to gemm.cpp: products with a vector, bound by the speed of reading the matrix.
#include <cstdint>

namespace runnel::cpu {

// y[j] = sum_p x[p * incx] * b[p * ldb + j], j < n
void gemv_rows(int64_t n, int64_t k, const float* x, int64_t incx, const float* b, int64_t ldb, float* y);
// The same, bit for bit, of a matrix that was packed so that it takes no more lines of memory than it must:
// kPackedGroup rows' whole vectors of 16 floats, what these rows have beyond them, the next rows. For n where
// gemv_packs(n); gemv_packed_size(n, k) floats on a 64-byte boundary.
constexpr int64_t kPackedGroup = 16;
bool gemv_packs(int64_t n);
inline int64_t gemv_packed_size(int64_t n, int64_t k) {
  return (k + kPackedGroup - 1) / kPackedGroup * kPackedGroup * n;
}
void gemv_pack(int64_t n, int64_t k, const float* b, float* packed);
void gemv_packed(int64_t n, int64_t k, const float* x, const float* packed, float* y);
// y[j] = sum_p x[p] * b[j * ldb + p], j < n
void gemv_dots(int64_t n, int64_t k, const float* x, const float* b, int64_t ldb, float* y);

}  // namespace runnel::cpu
