#pragma once

// Large matrices of float32 and float64: factored in their own precision, by products. Small ones, where that saves
// nothing, and other types go the way of linalg_factor.h, in double precision.
#include <cstdint>
#include <type_traits>

namespace runnel {

inline constexpr int64_t kLargeMatrix = 32;

template <class T>
constexpr bool may_be_large = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Each of one matrix, dense; `adjoint` takes the transpose of a.
template <class T>
void large_inverse(int64_t n, const T* a, bool adjoint, T* out);
template <class T>
void large_solve(int64_t n, int64_t m, const T* a, bool adjoint, const T* rhs, T* out);
template <class T>
void large_triangular_solve(int64_t n, int64_t m, const T* a, bool lower, bool adjoint, const T* rhs, T* out);
template <class T>
void large_cholesky(int64_t n, const T* a, T* out);
template <class T>
void large_qr(int64_t m, int64_t n, int64_t k, const T* a, T* q, T* r);
// False where nothing is found, as for what is not finite. s and e are of the smaller size; u and v as the op Svd gives
// them, or null, v of eigenvectors in columns.
template <class T>
bool large_svd(int64_t m, int64_t n, const T* a, bool full, double* s, T* u, T* v);
template <class T>
bool large_eigh(int64_t n, const T* a, double* e, T* v);

// row_to[k] as in LuFactors; returns the sign of the permutation.
template <class T>
double large_lu(int64_t n, const T* a, T* out, int32_t* row_to);

}  // namespace runnel
