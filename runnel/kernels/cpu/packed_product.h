#pragma once

#include <cstdint>

#include "runnel/base/export.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {

// A matrix op(B)[k,n] that many products with few rows share, as the steps of a recurrent layer do. Of floats it is a
// copy that is arranged for them; B must outlive the object.
template <class T>
class RUNNEL_API PackedMatrix {
 public:
  // op(B) is B itself, rows ldb apart, or, transposed, the transpose of B[n,k].
  PackedMatrix(ScratchFrame& frame, bool transposed, int64_t k, int64_t n, const T* b, int64_t ldb);

  // C[m,n] += A[m,k] * op(B). Every element of C is summed over k in an order that depends on k alone: however rows are
  // cut, the bits are the same. Runs on the compute pool.
  void add_product(int64_t m, const T* a, int64_t lda, T* c, int64_t ldc) const;

 private:
  bool transposed_;
  int64_t k_, n_;
  const T* b_;  // floats: packed
  int64_t ldb_;
};

}  // namespace runnel::cpu
