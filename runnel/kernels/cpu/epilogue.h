#pragma once

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// What happens to a finished result: y = max(0, x + bias) or part of it, then a function of every element in place.
struct Epilogue {
  const float* bias = nullptr;  // one value per column, added to every row
  bool relu = false;
  void (*then)(float* x, int64_t n, float parameter) = nullptr;
  float parameter = 0;

  bool empty() const { return !bias && !relu && !then; }
};

// For columns [first, first + columns) of `rows` rows, which start at c and are ldc apart.
RUNNEL_API void finish_rows(const Epilogue& epilogue, int64_t rows, int64_t first, int64_t columns, float* c,
                            int64_t ldc);

}  // namespace runnel::cpu
