#pragma once

#include <cstdint>
#include <type_traits>

#include "runnel/base/export.h"
#include "runnel/tensor/half.h"

namespace runnel::cpu {

// Bulk conversion between the 16-bit floating types and float: round to nearest even, NaN stays NaN,
// overflow gives infinity, float16 denormals are kept. Serial; the ranges must not overlap.
RUNNEL_API void convert_block(const Half* x, float* y, int64_t n);
RUNNEL_API void convert_block(const BFloat16* x, float* y, int64_t n);
RUNNEL_API void convert_block(const float* x, Half* y, int64_t n);
RUNNEL_API void convert_block(const float* x, BFloat16* y, int64_t n);

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The type a kernel computes in: float for the 16-bit floating types, else the type itself.
template <class T>
using compute_t = std::conditional_t<is_half<T>, float, T>;

}  // namespace runnel::cpu
