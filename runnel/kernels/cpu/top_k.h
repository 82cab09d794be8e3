#pragma once

// The largest elements of rows, over plain memory.

#include <cstdint>

namespace runnel::cpu {

// Of every row of n elements the k largest, largest first, and their positions; of equal elements the first comes
// first. NaN counts as smaller than every number. n must fit the Index type and 32 bits.
template <class T, class Index>
void top_k(const T* x, int64_t rows, int64_t n, int64_t k, T* values, Index* indices);

}  // namespace runnel::cpu
