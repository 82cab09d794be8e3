#pragma once

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// Eigenvalues (rising) and, with v, eigenvectors of a symmetric float matrix a[n,n], of which the lower triangle is
// read; a is destroyed. v[n,n] gets an eigenvector in each row. False where they are not found, as where an element is
// not finite.
RUNNEL_API bool symmetric_eigen(int64_t n, float* a, double* values, float* v);

// Singular values (falling) and, with u and v, vectors of a square float matrix a[n,n] = transpose(u) * diag(s) * v; a
// is destroyed. u and v [n,n] get a vector in each row. False where they are not found, as
// where an element is not finite.
RUNNEL_API bool singular_values(int64_t n, float* a, double* values, float* u, float* v);

}  // namespace runnel::cpu
