#pragma once

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// Factorisations of dense matrices of float or double, row-major, rows `ld` apart, in place. Most of the work is
// products; these run on the compute pool. The bits do not depend on the number of threads.

// B[n,m] becomes the X with A * X = B for a triangular A[n,n], of which the other triangle is not read; with `unit` its
// diagonal counts as ones. A zero on the diagonal gives infinities or NaN, as any division by zero.
template <class T>
RUNNEL_API void solve_triangular(bool lower, bool unit, int64_t n, int64_t m, const T* a, int64_t lda, T* b,
                                 int64_t ldb);

// The lower triangle becomes L with L * transpose(L) = A, the other zeros; false where A, of which the lower triangle
// is read, is not positive definite (what then stands there has no meaning).
template <class T>
RUNNEL_API bool cholesky(int64_t n, T* a, int64_t lda);

// L (below the diagonal, ones on it) and U of A[n,n] with rows swapped: row k of the product is row swaps[k] of what A
// was after the swaps before. Returns whether their number is odd.
template <class T>
RUNNEL_API bool lu(int64_t n, T* a, int64_t lda, int32_t* swaps);

// A[m,n] = Q * R by reflections. `a` holds the transpose of A, [n,m]; q gets the transpose of Q's first k columns,
// [k,m], r the first k rows of R, [k,n]; k is at least min(m, n).
template <class T>
RUNNEL_API void qr(int64_t m, int64_t n, int64_t k, T* a, T* q, T* r);

}  // namespace runnel::cpu
