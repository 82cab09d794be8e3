#pragma once

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// T is float or double.

// Eigenvalues (rising) and, with v, eigenvectors of a symmetric matrix a[n,n], of which the lower triangle is
// read; a is destroyed. v[n,n] gets an eigenvector in each row. False where they are not found, as where an element is
// not finite.
template <class T>
RUNNEL_API bool symmetric_eigen(int64_t n, T* a, double* values, T* v);

// Singular values (falling) and, with u and v, vectors of a square matrix a[n,n] = transpose(u) * diag(s) * v; a
// is destroyed. u and v [n,n] get a vector in each row. False where they are not found, as
// where an element is not finite.
template <class T>
RUNNEL_API bool singular_values(int64_t n, T* a, double* values, T* u, T* v);

}  // namespace runnel::cpu
