#include "runnel/kernels/cpu/epilogue.h"

#include "runnel/base/cpu.h"
#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu {
namespace {

template <bool relu>
RUNNEL_INLINE void add_bias(const float* bias, int64_t rows, int64_t columns, float* c, int64_t ldc) {
  for (int64_t i = 0; i < rows; ++i, c += ldc) {
    RUNNEL_IVDEP
    for (int64_t j = 0; j < columns; ++j) {
      const float x = c[j] + bias[j];
      c[j] = relu && 0.0f > x ? 0.0f : x;
    }
  }
}

RUNNEL_INLINE void clamp(int64_t rows, int64_t columns, float* c, int64_t ldc) {
  for (int64_t i = 0; i < rows; ++i, c += ldc) {
    RUNNEL_IVDEP
    for (int64_t j = 0; j < columns; ++j) c[j] = 0.0f > c[j] ? 0.0f : c[j];
  }
}

RUNNEL_INLINE void finish(const float* bias, bool relu, int64_t rows, int64_t columns, float* c, int64_t ldc) {
  if (bias && relu) {
    add_bias<true>(bias, rows, columns, c, ldc);
  } else if (bias) {
    add_bias<false>(bias, rows, columns, c, ldc);
  } else if (relu) {
    clamp(rows, columns, c, ldc);
  }
}

void finish_base(const float* bias, bool relu, int64_t rows, int64_t columns, float* c, int64_t ldc) {
  finish(bias, relu, rows, columns, c, ldc);
}
RUNNEL_AVX2 void finish_avx2(const float* bias, bool relu, int64_t rows, int64_t columns, float* c, int64_t ldc) {
  finish(bias, relu, rows, columns, c, ldc);
}

}  // namespace

void finish_rows(const Epilogue& e, int64_t rows, int64_t first, int64_t columns, float* c, int64_t ldc) {
  if (e.bias || e.relu) {
    const float* bias = e.bias ? e.bias + first : nullptr;
    (has_avx2() ? finish_avx2 : finish_base)(bias, e.relu, rows, columns, c, ldc);
  }
  if (!e.then) return;
  if (columns == ldc) return e.then(c, rows * columns, e.parameter);
  for (int64_t i = 0; i < rows; ++i) e.then(c + i * ldc, columns, e.parameter);
}

}  // namespace runnel::cpu
