#pragma once

// Large float32 matrices: factored in float32, by products. Small ones, where that saves nothing, and other types go
// the way of linalg_factor.h, in double precision.
#include <cstdint>
#include <type_traits>

namespace runnel {

inline constexpr int64_t kLargeMatrix = 32;

template <class T>
constexpr bool may_be_large = std::is_same_v<T, float>;

// Each of one matrix, dense; `adjoint` takes the transpose of a.
void large_inverse(int64_t n, const float* a, bool adjoint, float* out);
void large_solve(int64_t n, int64_t m, const float* a, bool adjoint, const float* rhs, float* out);
void large_triangular_solve(int64_t n, int64_t m, const float* a, bool lower, bool adjoint, const float* rhs,
                            float* out);
void large_cholesky(int64_t n, const float* a, float* out);
void large_qr(int64_t m, int64_t n, int64_t k, const float* a, float* q, float* r);
// False where nothing is found, as for what is not finite. s and e are of the smaller size; u and v as the op Svd gives
// them, or null, v of eigenvectors in columns.
bool large_svd(int64_t m, int64_t n, const float* a, bool full, double* s, float* u, float* v);
bool large_eigh(int64_t n, const float* a, double* e, float* v);

// row_to[k] as in LuFactors; returns the sign of the permutation.
double large_lu(int64_t n, const float* a, float* out, int32_t* row_to);

}  // namespace runnel
