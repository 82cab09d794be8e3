#pragma once

// Internal to dense.cpp and dense_spectrum.cpp: reflections that are applied together, as products.
#include <cstdint>

#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {

constexpr int64_t kReflections = 32;  // that are applied together

// I - transpose(v) * t * v, where v[k,m] has a vector in each row.
struct Reflections {
  // Of rows of w, of which row i leaves the elements before i alone: its vector is a 1 at i and what stands behind it.
  Reflections(ScratchFrame& frame, int64_t k, int64_t m, const float* w, int64_t ldw, const float* tau);

  // x[rows,m] becomes x * H, or, transposed, x * transpose(H).
  void apply(bool transposed, int64_t rows, float* x, int64_t ldx) const;

  int64_t k, m;
  float* v;
  float* t;  // [k,k], upper triangular
};

}  // namespace runnel::cpu
